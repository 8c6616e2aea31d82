// Behaviour of the <details> menus: one open at a time, closed by Escape and outside clicks, arrow keys, and opening upwards
// when there is no room below, or over its button when there is none above either.
const edge = 8; // px of the window that a menu leaves free

// place says whether a menu opens upwards, or how far it is moved up, so that it is in a window of this height. list is its box
// when it opens downwards, and top that of its button.
export function place(list, top, height) {
  const over = list.bottom + edge - height;
  const up = over > 0 && list.height + edge < top;
  return { up, by: up ? 0 : Math.max(0, Math.min(over, list.top - edge)) };
}

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
    const list = menu.querySelector(".menu-list");
    list.style.translate = "";
    const { up, by } = place(list.getBoundingClientRect(), menu.getBoundingClientRect().top, innerHeight);
    menu.classList.toggle("up", up);
    if (by) list.style.translate = `0 ${-by}px`;
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
