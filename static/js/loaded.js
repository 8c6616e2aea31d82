// Removes the note that parts of the page have not loaded (#late), once every script that it waits for has called loaded.
export function loaded(script) {
  const note = document.getElementById("late");
  if (!note) return;
  const awaited = note.dataset.awaits.split(" ").filter((name) => name !== script);
  note.dataset.awaits = awaited.join(" ");
  if (!awaited.length) note.remove();
}
