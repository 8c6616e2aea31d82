// The files' pane keeps its tree and its editor, with what is unsaved in them, while the sandbox rests or is stopped: how it
// stands goes into data-state of both, and what would wake it into a bar below. Only a sandbox that is gone takes them away.
import htmx from "./htmx.js";

document.addEventListener("htmx:partialBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  const next = fragment.firstElementChild;
  if (target.id !== "pane-files" || !target.querySelector("sandbox-files") || !next || next.dataset.kind === "deleted") return;
  event.detail.shouldSwap = false;
  target.dataset.state = next.dataset.state;
  for (const part of target.querySelectorAll("sandbox-files, sandbox-editor")) part.dataset.state = next.dataset.state;
  target.querySelector(".pane-rest")?.remove();
  const panel = next.dataset.kind === "files" ? null : next.querySelector(".panel");
  if (!panel) return;
  panel.className = "pane-rest";
  panel.setAttribute("role", "status");
  target.append(panel);
  htmx.process(panel);
});
