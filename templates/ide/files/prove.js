// prove.js TREE HOME: looks for every module that the tree's code names, loads every extension, starts the tree as the guest
// does, and asks it for what a page and a terminal need.
"use strict";

const [tree, home] = process.argv.slice(2);
const { spawn, execFileSync } = require("child_process");
const fs = require("fs");
const http = require("http");
const Module = require("module");
const net = require("net");
const path = require("path");

const socket = path.join(home, "prove.sock");
const vscode = path.join(tree, "lib/vscode");
const limit = 60_000;

// Modules that may be missing though code names them: for other systems, for telemetry, for proxies that want Kerberos, and
// those that code-server itself comes without, or whose code does without them.
const spare = new Set([
	"@microsoft/mxc-sdk", "@vscode/windows-ca-certs", "@vscode/windows-process-tree", "@vscode/windows-registry", "electron",
	"@microsoft/1ds-core-js", "@microsoft/1ds-post-js", "kerberos",
	"@vscode/diff", "@vscode/dwarf-debugging", "@vscode/vsce-sign", "vsda", "bufferutil", "utf-8-validate",
	"a", "chcp", // no modules, but words
]);

function ask(url) {
	return new Promise((resolve, reject) => {
		http.get({ socketPath: socket, path: url, headers: { host: "prove" } }, (answer) => {
			let text = "";
			answer.on("data", (piece) => (text += piece));
			answer.on("end", () => (answer.statusCode === 200 ? resolve(text) : reject(new Error(`${url}: ${answer.statusCode}`))));
		}).on("error", reject);
	});
}

async function modules() {
	const from = (name) => import(path.join(vscode, "node_modules", name));
	const pty = await from("node-pty/lib/index.js");
	await new Promise((resolve) => (pty.default ?? pty).spawn("/bin/true", [], {}).onExit(resolve));
	await from("@parcel/watcher/index.js");
	require(path.join(tree, "node_modules/argon2"));
	const rg = execFileSync("sh", ["-c", `echo ${vscode}/node_modules/@vscode/ripgrep-universal/bin/*/rg`]).toString().trim();
	execFileSync(rg, ["--version"]);
}

// The ways in which code names a module: as Node's own, by a name that its bundler made up, and for the browser.
const named = /(?<![\w$.])(?:require|import)\(["'`]([^"'`]+)["'`]\)|(?<=[}\w$])\s?from\s?"([^"]+)"/g;
const loaded = /(?<![\w$.])[\w$]+\(["'`]([^"'`]+)["'`]\)/g;
const served = /(?<![\w$.])[\w$]+\("([^"]+)","([\w/.-]+\.js)"\)/g;
const module_ = /^(?:@[a-z][\w.-]*\/)?[a-z][\w.-]*(?=\/|$)/;

// names looks for every module that VS Code and its extensions name, and loads those that VS Code names itself.
async function names() {
	const own = Object.keys(require(path.join(vscode, "package.json")).dependencies);
	const load = new Set();
	const missing = new Set();
	const need = (file, name, at = name) => {
		const module = module_.exec(name)?.[0];
		if (!module || spare.has(module) || Module.isBuiltin(name) || name === "vscode") return false;
		try {
			Module.createRequire(file).resolve(at);
			return true;
		} catch {
			missing.add(`${at}, which ${path.relative(tree, file)} names`);
		}
	};
	for (const entry of fs.readdirSync(vscode, { recursive: true })) {
		const file = path.join(vscode, entry);
		const [top] = entry.split("/");
		if (!/\.[cm]?js$/.test(entry) || !["out", "extensions"].includes(top)) continue;
		if (/node_modules\/typescript\/|eslint\.config|nls\.messages/.test(entry)) continue; // these name examples
		const text = fs.readFileSync(file, "utf8");
		for (const [, one, other] of text.matchAll(named)) need(file, one ?? other);
		if (top !== "out") continue;
		for (const [, name] of text.matchAll(loaded)) if (own.includes(name) && need(file, name)) load.add(name);
		for (const [, name, script] of text.matchAll(served)) need(file, name, path.join(vscode, "node_modules", name, script));
	}
	if (missing.size) throw new Error(`missing:\n${[...missing].join("\n")}`);
	const from = Module.createRequire(path.join(vscode, "out/server-main.js"));
	for (const name of load) await import(from.resolve(name));
	console.log(`VS Code's modules load: ${[...load].sort().join(" ")}`);
}

// anything stands for every part of the interface that VS Code has for its extensions, also as a class, a list or a key.
const anything = new Proxy(function () {}, {
	get: (target, key) => {
		if (key === "prototype") return target.prototype;
		if (key === "then") return undefined;
		if (key === "appRoot") return vscode;
		if (key === Symbol.toPrimitive) return () => "";
		if (key === Symbol.iterator) return () => [].values();
		return anything;
	},
	apply: () => anything,
	construct: () => ({}),
});

// offerAnything gives extensions that module "vscode": as bundlers copy it, or with every name that the importing file uses.
function offerAnything() {
	const api = new Proxy({}, { get: (_, key) => anything[key], getPrototypeOf: () => anything });
	const load = Module._load;
	Module._load = (name, ...rest) => (name === "vscode" ? api : load(name, ...rest));
	globalThis.anything = anything;
	Module.registerHooks({
		resolve(name, context, next) {
			if (name !== "vscode") return next(name, context);
			const text = fs.readFileSync(new URL(context.parentURL), "utf8");
			const names = new Set();
			for (const [, list] of text.matchAll(/import\s*{([^}]*)}\s*from\s*"vscode"/g)) {
				for (const one of list.split(",")) names.add(one.trim().split(/\s/)[0]);
			}
			for (const [, all] of text.matchAll(/import\s*\*\s*as\s+([\w$]+)\s*from\s*"vscode"/g)) {
				for (const [, one] of text.matchAll(new RegExp(`(?<![\\w$.])${all.replaceAll("$", "\\$&")}\\.(\\w+)`, "g"))) names.add(one);
			}
			return { url: `anything:${[...names]}`, format: "module", shortCircuit: true };
		},
		load(url, context, next) {
			if (!url.startsWith("anything:")) return next(url, context);
			const names = url.slice("anything:".length);
			return { format: "module", source: `const {${names}} = anything; export {${names}};`, shortCircuit: true };
		},
	});
}

// extensions loads what every built-in extension starts with, and sees that the files are there which it says it has.
function extensions() {
	offerAnything();
	const folder = path.join(vscode, "extensions");
	let count = 0;
	for (const name of fs.readdirSync(folder)) {
		const at = path.join(folder, name);
		if (!fs.existsSync(path.join(at, "package.json"))) continue;
		const said = require(path.join(at, "package.json"));
		for (const file of JSON.stringify(said.contributes ?? {}).matchAll(/"(\.\/[^"*{}]+\.\w+)"/g)) {
			if (!fs.existsSync(path.join(at, file[1]))) throw new Error(`${name} has no ${file[1]}`);
		}
		for (const other of said.extensionDependencies ?? []) {
			if (!fs.existsSync(path.join(folder, other.replace(/^vscode\./, "")))) throw new Error(`${name} needs ${other}`);
		}
		if (!said.main) continue;
		if (typeof require(path.join(at, said.main)).activate !== "function") throw new Error(`${name} cannot be activated`);
		count++;
	}
	console.log(`${count} extensions load`);
}

async function main() {
	await modules();
	await names();
	extensions();
	const server = net.createServer();
	await new Promise((resolve) => server.listen(socket, resolve));
	const child = spawn(path.join(tree, "lib/node"), [path.join(tree, "start.js"), "--auth", "none", "--disable-telemetry", home], {
		stdio: ["ignore", "inherit", "inherit", server._handle.fd, "pipe"],
	});
	const ended = new Promise((_, reject) => child.on("exit", (code) => reject(new Error(`it ended with ${code}`))));
	await Promise.race([new Promise((resolve) => child.stdio[4].once("data", resolve)), ended]);
	const page = await Promise.race([ask(`/?folder=${home}`), ended]);
	const script = /[^"]*workbench\/workbench\.js/.exec(page);
	if (!script) throw new Error("the page has no workbench");
	const code = await ask(new URL(script[0], "http://prove/").pathname);
	console.log(`the page answers, its script has ${code.length} characters`);
	process.exit(0);
}

setTimeout(() => { console.error("no answer in time"); process.exit(1); }, limit);
main().catch((error) => { console.error(error); process.exit(1); });
