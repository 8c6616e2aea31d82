// A QR code of a link, beside it. The page works without: the library is loaded when there is one to draw.
const ns = "http://www.w3.org/2000/svg";
const quiet = 4; // modules of white around the code, as its standard wants

// shape gives the dark modules of a code as the path of an SVG, with the size of the whole in modules.
export function shape(code) {
  const size = code.getModuleCount();
  let path = "";
  for (let row = 0; row < size; row++) {
    for (let from = 0; from < size; from++) {
      if (!code.isDark(row, from)) continue;
      let to = from + 1;
      while (to < size && code.isDark(row, to)) to++;
      path += `M${from + quiet} ${row + quiet}h${to - from}v1h${from - to}z`;
      from = to;
    }
  }
  return { path, size: size + 2 * quiet };
}

// draw gives a picture of text as a QR code. It is dark on white in either theme: cameras expect that.
export async function draw(text) {
  const { qrcode } = await import("qrcode-generator");
  const code = qrcode(0, "M"); // the smallest that holds it
  code.addData(text);
  code.make();
  const { path, size } = shape(code);
  const svg = element("svg", { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": "QR code of the link", "shape-rendering": "crispEdges" });
  svg.append(element("rect", { width: size, height: size, fill: "#fff" }), element("path", { d: path, fill: "#000" }));
  return svg;
}

function element(tag, attributes) {
  const e = document.createElementNS(ns, tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  return e;
}

async function look() {
  for (const figure of document.querySelectorAll("[data-qr]")) {
    const text = figure.dataset.qr;
    delete figure.dataset.qr;
    figure.prepend(await draw(text));
    figure.hidden = false;
  }
}

globalThis.document?.addEventListener("htmx:afterSwap", look);
if (globalThis.document?.querySelector) look();
