// The names of languages whose code can be run (internal/tools/code.go).
export const languages = new Set(["python", "py", "python3", "javascript", "js", "node", "typescript", "ts", "bash", "shell", "sh", "ruby", "rb", "perl", "pl", "php", "go", "r", "lua"]);
