// Keeps the file tree and the editor, with unsaved work, while the sandbox is asleep or stopped. The state goes into their
// data-state. They are removed only when the sandbox is deleted.
document.addEventListener("htmx:partialBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  const next = fragment.firstElementChild;
  if (target.id !== "pane-files" || !target.querySelector("sandbox-files") || !next || next.dataset.kind === "deleted") return;
  event.detail.shouldSwap = false;
  target.dataset.state = next.dataset.state;
  for (const part of target.querySelectorAll("sandbox-files, sandbox-editor")) part.dataset.state = next.dataset.state;
});
