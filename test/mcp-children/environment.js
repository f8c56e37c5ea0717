// Tells its environment and its folder.
const params = { env: process.env, cwd: process.cwd() };
process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", method: "environment", params })}\n`);
process.stdin.resume();
