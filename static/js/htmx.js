// htmx as the global that its extensions expect. It is configured by the page's meta tag (views/layout.templ).
import htmx from "htmx.org/dist/htmx.esm.js";

window.htmx = htmx;

export default htmx;
