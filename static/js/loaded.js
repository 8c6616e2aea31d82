// The note that parts of the page have not loaded (views, "late") goes when every script that the page needs has said so here.
export function loaded(script) {
  const note = document.getElementById("late");
  if (!note) return;
  const awaited = note.dataset.awaits.split(" ").filter((name) => name !== script);
  note.dataset.awaits = awaited.join(" ");
  if (!awaited.length) note.remove();
}
