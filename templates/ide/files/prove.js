// prove.js TREE HOME: starts the tree as the guest does and asks it for what a page and a terminal need.
"use strict";

const [tree, home] = process.argv.slice(2);
const { spawn, execFileSync } = require("child_process");
const http = require("http");
const net = require("net");
const path = require("path");

const socket = path.join(home, "prove.sock");
const vscode = path.join(tree, "lib/vscode");
const limit = 60_000;

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
	await from("@vscode/spdlog/index.js");
	await from("@parcel/watcher/index.js");
	require(path.join(tree, "node_modules/argon2"));
	const rg = execFileSync("sh", ["-c", `echo ${vscode}/node_modules/@vscode/ripgrep-universal/bin/*/rg`]).toString().trim();
	execFileSync(rg, ["--version"]);
}

async function main() {
	await modules();
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
