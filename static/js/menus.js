// Behaviour of the <details> menus: one open at a time, closed by Escape and outside clicks, arrow keys, and opening upwards
// when there is no room below.
const open = () => document.querySelectorAll("details.menu[open]");

function closeAll(except) {
  for (const menu of open()) if (menu !== except) menu.open = false;
}

document.addEventListener(
  "toggle",
  (event) => {
    const menu = event.target;
    if (!menu.matches?.("details.menu") || !menu.open) return;
    closeAll(menu);
    menu.classList.remove("up");
    const box = menu.querySelector(".menu-list").getBoundingClientRect();
    menu.classList.toggle("up", box.bottom > innerHeight && box.height < menu.getBoundingClientRect().top);
  },
  true,
);

document.addEventListener("pointerdown", (event) => {
  closeAll(event.target.closest?.("details.menu"));
});

document.addEventListener("click", (event) => {
  const item = event.target.closest?.(".menu-item, .menu-list [data-sheet]");
  if (!item || (event.defaultPrevented && !item.matches("[data-sheet], [data-help]"))) return;
  item.closest("details.menu[open]")?.querySelector("summary").focus(); // a dialog returns the focus there
  closeAll();
});

document.addEventListener("keydown", (event) => {
  const menu = event.target.closest?.("details.menu[open]");
  if (!menu) {
    if (event.key === "Escape") closeAll();
    return;
  }
  if (event.key === "Escape") {
    menu.open = false;
    menu.querySelector("summary").focus();
    event.stopPropagation();
    return;
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const items = [...menu.querySelectorAll(".menu-item")];
  const at = items.indexOf(document.activeElement);
  items.at((at + step + items.length) % items.length)?.focus();
});
