// Keeps the file tree and the editor, with unsaved work, while the sandbox is asleep or stopped. The state goes into their
// data-state. They are removed only when the sandbox is deleted.
document.addEventListener("htmx:partialBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  const next = fragment.firstElementChild;
  const part = target.querySelector?.(":scope > sandbox-files, :scope > sandbox-editor");
  if (!part || !next || next.dataset.kind === "deleted") return;
  event.detail.shouldSwap = false;
  for (const e of target.querySelectorAll("sandbox-files, sandbox-editor")) e.dataset.state = next.dataset.state;
  target.dataset.state = next.dataset.state;
});
