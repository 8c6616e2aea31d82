// The menus of the tree: what can be done with what is selected, and with the place itself.
import { keyName } from "../js/dom.js";
import { parentOf } from "./paths.js";

// menuOf is the menu of nodes, or of the folder on top when there are none.
export function menuOf(files, nodes) {
  const { deeds } = files;
  if (!nodes.length) return folderItems(files, files.tree.root, true);
  const one = nodes.length === 1 ? nodes[0] : null;
  const opens = one && !one.folder ? [{ icon: "open", text: "Open", key: "↵", act: () => files.open(one, { pin: true }) }, null] : [];
  const inside = one?.folder ? [...folderItems(files, one, false), null] : [];
  const forms = one && !one.folder ? [{ icon: "download", text: "Download", act: () => deeds.download(nodes) }] : [
    { icon: "download", text: "Download as zip", act: () => deeds.download(nodes, "zip") },
    { icon: "download", text: "Download as tar.zst", act: () => deeds.download(nodes, "tar.zst") },
  ];
  return [
    ...opens, ...inside,
    { icon: "cut", text: "Cut", key: keyName("X"), act: () => deeds.put(nodes, true) },
    { icon: "copy", text: "Copy", key: keyName("C"), act: () => deeds.put(nodes, false) },
    ...(one?.folder ? [] : [{ icon: "paste", text: "Paste", key: keyName("V"), off: !deeds.clip, act: () => deeds.paste() }]),
    null, ...forms,
    { icon: "copy", text: nodes.length > 1 ? "Copy paths" : "Copy path", act: () => deeds.copyPath(nodes) },
    null,
    ...(one ? [{ icon: "rename", text: "Rename", key: "F2", act: () => deeds.rename(one) }] : []),
    { icon: "trash", text: "Delete", key: "Del", danger: true, act: () => deeds.remove(nodes) },
    ...(one ? [null, { icon: "note", text: "Properties…", act: () => deeds.properties(one) }] : []),
  ];
}

function folderItems(files, node, top) {
  const { deeds } = files;
  return [
    { icon: "new-file", text: "New file", act: () => deeds.create("file", node) },
    { icon: "new-folder", text: "New folder", act: () => deeds.create("folder", node) },
    { icon: "upload", text: "Upload files…", act: () => files.upload(node.path) },
    { icon: "upload", text: "Upload a folder…", act: () => files.upload(node.path, true) },
    { icon: "paste", text: "Paste", key: keyName("V"), off: !deeds.clip, act: () => deeds.paste(node) },
    ...(top ? [null, { icon: "refresh", text: "Reload", act: () => files.loader.everything() }] : [{ icon: "right", text: "Make this the top", act: () => files.go(node.path) }]),
  ];
}

// placeMenu is the menu of the pane.
export function placeMenu(files) {
  const { tree, deeds, loader } = files;
  return [
    { icon: "home", text: "Home", act: () => files.go(files.home) },
    { icon: "up", text: "Folder above", key: "Alt+↑", off: tree.root.path === "/", act: () => files.go(parentOf(tree.root.path)) },
    null,
    { text: "Show hidden files", checked: tree.showHidden, act: () => showHidden(files) },
    { icon: "collapse", text: "Close all folders", act: () => closeAll(files) },
    { icon: "refresh", text: "Reload", act: () => loader.everything() },
    null,
    { icon: "download", text: "Download this folder as zip", act: () => deeds.download([tree.root], "zip") },
    { icon: "download", text: "Download this folder as tar.zst", act: () => deeds.download([tree.root], "tar.zst") },
    null,
    ...(deeds.canUndo ? [{ icon: "undo", text: "Undo delete", key: keyName("Z"), act: () => deeds.undo() }] : []),
    { icon: "trash", text: "Trash", act: () => files.turn("trash") },
  ];
}

function showHidden(files) {
  files.tree.showHidden = !files.tree.showHidden;
  files.tree.flatten();
  files.changed();
  files.remember();
}

function closeAll(files) {
  for (const node of files.tree.openFolders().slice(1)) node.open = false;
  files.tree.flatten();
  files.changed();
  files.remember();
}

