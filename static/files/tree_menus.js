// The menus of the tree: for the selection, and for the pane.
import { keyName } from "../js/dom.js";
import { parentOf } from "./paths.js";

// menuOf returns the menu of nodes, or of the root when there are none.
export function menuOf(files, nodes) {
  const { actions } = files;
  if (!nodes.length) return folderItems(files, files.tree.root, true);
  const one = nodes.length === 1 ? nodes[0] : null;
  const opens = one && !one.folder ? [{ icon: "open", text: "Open", key: "↵", act: () => files.open(one, { pin: true }) }, null] : [];
  const inside = one?.folder ? [...folderItems(files, one, false), null] : [];
  const forms = one && !one.folder ? [{ icon: "download", text: "Download", act: () => actions.download(nodes) }] : [
    { icon: "download", text: "Download as zip", act: () => actions.download(nodes, "zip") },
    { icon: "download", text: "Download as tar.zst", act: () => actions.download(nodes, "tar.zst") },
  ];
  return [
    ...opens, ...inside,
    { icon: "cut", text: "Cut", key: keyName("X"), act: () => actions.setClipboard(nodes, true) },
    { icon: "copy", text: "Copy", key: keyName("C"), act: () => actions.setClipboard(nodes, false) },
    ...(one?.folder ? [] : [{ icon: "paste", text: "Paste", key: keyName("V"), off: !actions.clipboard, act: () => actions.paste() }]),
    null, ...forms,
    { icon: "copy", text: nodes.length > 1 ? "Copy paths" : "Copy path", act: () => actions.copyPath(nodes) },
    null,
    ...(one ? [{ icon: "rename", text: "Rename", key: "F2", act: () => actions.rename(one) }] : []),
    { icon: "trash", text: "Delete", key: "Del", danger: true, act: () => actions.remove(nodes) },
    ...(one ? [null, { icon: "note", text: "Properties…", act: () => actions.properties(one) }] : []),
  ];
}

function folderItems(files, node, top) {
  const { actions } = files;
  return [
    { icon: "new-file", text: "New file", act: () => actions.create("file", node) },
    { icon: "new-folder", text: "New folder", act: () => actions.create("folder", node) },
    { icon: "upload", text: "Upload files…", act: () => files.upload(node.path) },
    { icon: "upload", text: "Upload a folder…", act: () => files.upload(node.path, true) },
    { icon: "paste", text: "Paste", key: keyName("V"), off: !actions.clipboard, act: () => actions.paste(node) },
    ...(top ? [null, { icon: "refresh", text: "Reload", act: () => files.loader.reloadAll() }] : [{ icon: "right", text: "Open as root", act: () => files.go(node.path) }]),
  ];
}

// paneMenu returns the menu of the pane.
export function paneMenu(files) {
  const { tree, actions, loader } = files;
  const quick = files.whole ? [] : [{ icon: "search", text: "Go to file…", key: keyName("P"), act: () => document.dispatchEvent(new CustomEvent("sandboxd:palette", { detail: "files" })) }, null];
  return [
    ...quick,
    { icon: files.whole ? "box" : "home", text: files.whole ? "Volume" : "Home", act: () => files.go(files.home) },
    { icon: "up", text: "Parent folder", key: "Alt+↑", off: tree.root.path === "/", act: () => files.go(parentOf(tree.root.path)) },
    null,
    { text: "Show hidden files", checked: tree.showHidden, act: () => showHidden(files) },
    { icon: "collapse", text: "Collapse all folders", act: () => closeAll(files) },
    { icon: "refresh", text: "Reload", act: () => loader.reloadAll() },
    null,
    { icon: "download", text: "Download this folder as zip", act: () => actions.download([tree.root], "zip") },
    { icon: "download", text: "Download this folder as tar.zst", act: () => actions.download([tree.root], "tar.zst") },
    null,
    ...(actions.canUndo ? [{ icon: "undo", text: "Undo delete", key: keyName("Z"), act: () => actions.undo() }] : []),
    { icon: "trash", text: "Trash", act: () => files.setView("trash") },
  ];
}

function showHidden(files) {
  files.tree.showHidden = !files.tree.showHidden;
  files.tree.flatten();
  files.changed();
  files.saveState();
}

function closeAll(files) {
  for (const node of files.tree.openFolders().slice(1)) node.open = false;
  files.tree.flatten();
  files.changed();
  files.saveState();
}

