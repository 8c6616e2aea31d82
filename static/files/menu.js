// A menu at a position or below a button, with keyboard navigation. Escape and outside clicks close it.
import { h, icon } from "../js/dom.js";

let open = null;

// openMenu shows items: {icon, text, where, key, act, danger, off, checked}, or null for a separator. where follows the
// text, which cannot affect how it is displayed. at: {x, y}, or the button.
export function openMenu(items, at, { label = "Menu" } = {}) {
  closeMenu();
  const menu = h("div", { class: "menu-list popped", role: "menu", "aria-label": label, popover: "manual" }, items.map(item));
  const back = document.activeElement;
  const away = new AbortController();
  open = { menu, back, away, button: at instanceof Element ? at : null };
  document.body.append(menu);
  menu.showPopover();
  put(menu, at);
  open.button?.setAttribute("aria-expanded", "true");
  menu.querySelector("[role^=menuitem]:not([aria-disabled])")?.focus({ preventScroll: true });
  menu.addEventListener("keydown", walk);
  const elsewhere = (event) => !menu.contains(event.target) && closeMenu(false);
  const escape = (event) => {
    if (event.key !== "Escape" || menu.contains(event.target)) return;
    event.preventDefault();
    event.stopPropagation();
    closeMenu();
  };
  document.addEventListener("keydown", escape, { capture: true, signal: away.signal });
  document.addEventListener("pointerdown", elsewhere, { capture: true, signal: away.signal });
  document.addEventListener("scroll", elsewhere, { capture: true, signal: away.signal });
  addEventListener("blur", () => closeMenu(false), { signal: away.signal });
  addEventListener("resize", () => closeMenu(), { signal: away.signal });
}

export function closeMenu(returnFocus = true) {
  if (!open) return;
  const { menu, back, away, button } = open;
  open = null;
  away.abort();
  const had = menu.contains(document.activeElement);
  menu.remove();
  button?.setAttribute("aria-expanded", "false");
  if (returnFocus && had) back?.focus?.({ preventScroll: true });
}

// offer has the command palette take the items of a menu that an element opens (js/commands.js).
export function offer(element, items, { label = "Menu" } = {}) {
  element.dataset.menu = "";
  element.commands = { items, label };
}

// menuButton makes a button open a menu; items() is called each time.
export function menuButton(button, items, options) {
  offer(button, items, options);
  button.setAttribute("aria-haspopup", "menu");
  button.setAttribute("aria-expanded", "false");
  button.addEventListener("click", () => (open?.button === button ? closeMenu() : openMenu(items(), button, options)));
  button.addEventListener("pointerdown", (event) => open?.button === button && event.stopPropagation());
  return button;
}

export function item(it) {
  if (!it) return h("div", { class: "menu-line", role: "separator" });
  const role = it.checked === undefined ? "menuitem" : "menuitemcheckbox";
  const b = h("button", {
    type: "button", class: `menu-item${it.danger ? " danger" : ""}`, role, tabindex: "-1",
    "aria-checked": it.checked === undefined ? null : String(it.checked), "aria-disabled": it.off ? "true" : null,
  }, icon(it.checked === false ? "blank" : it.checked ? "check" : it.icon ?? "blank"), h("span", {}, h("bdi", {}, it.text), it.where && [" — ", h("bdi", {}, it.where)]), it.key && h("kbd", { class: "key end" }, it.key));
  b.addEventListener("click", () => {
    if (it.off) return;
    closeMenu();
    it.act();
  });
  return b;
}

function put(menu, at) {
  const box = menu.getBoundingClientRect();
  const edge = 8;
  let { x, y } = at;
  if (at instanceof Element) {
    const b = at.getBoundingClientRect();
    x = b.right - box.width < edge ? b.left : b.right - box.width;
    y = b.bottom + 4;
    if (y + box.height > innerHeight - edge && b.top - box.height > edge) y = b.top - box.height - 4;
  }
  menu.style.left = `${Math.max(edge, Math.min(x, innerWidth - box.width - edge))}px`;
  menu.style.top = `${Math.max(edge, Math.min(y, innerHeight - box.height - edge))}px`;
}

function walk(event) {
  const items = [...event.currentTarget.querySelectorAll("[role^=menuitem]:not([aria-disabled])")];
  const at = items.indexOf(document.activeElement);
  const to = {
    ArrowDown: at + 1, ArrowUp: at < 0 ? items.length - 1 : at - 1, Home: 0, End: items.length - 1,
  }[event.key];
  if (to !== undefined) items.at(to % items.length)?.focus();
  else if (event.key === "Escape" || event.key === "Tab") closeMenu();
  else if (event.key.length === 1 && event.key !== " ") letter(items, at, event.key.toLowerCase());
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function letter(items, at, key) {
  const order = [...items.slice(at + 1), ...items.slice(0, at + 1)];
  order.find((i) => i.textContent.trim().toLowerCase().startsWith(key))?.focus();
}
