// htmx as a global, which its extensions expect. The page's meta tag configures it (views/layout.templ).
import htmx from "htmx.org/dist/htmx.esm.js";

window.htmx = htmx;

export default htmx;
