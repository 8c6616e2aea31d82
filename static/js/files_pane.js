// Keeps the file tree and the editor, with unsaved work, while the sandbox is asleep or stopped. The state goes into their
// data-state, and the panel that offers to wake it into a bar below. They are removed only when the sandbox is deleted.
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
