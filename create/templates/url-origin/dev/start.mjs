/**
 * `npm run dev`. It starts a demo origin, which answers every request with 200, and `wrangler dev` with this
 * origin. To use an origin of your own:
 *
 *   npm run dev -- --origin http://localhost:3000
 *
 * All other arguments go to `wrangler dev`. Only `npm run dev` reads this file.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const args = process.argv.slice(2);
const flag = args.indexOf("--origin");
const [, ownOrigin] = flag === -1 ? [] : args.splice(flag, 2);
// The address that wrangler listens on. Its own default is the port 8787.
const [, port = "8787"] = /(?:^| )--port[ =](\d+)/.exec(args.join(" ")) ?? [];
const origin = ownOrigin ?? (await startDemoOrigin());

console.log(`
The origin is ${origin}${ownOrigin ? "" : ", a demo"}. When wrangler is ready, send six logins to its address. The sixth gets 429:

  for i in 1 2 3 4 5 6; do curl -s -o /dev/null -w '%{http_code}\\n' -X POST http://localhost:${port}/login; done
`);

const wrangler = dirname(createRequire(import.meta.url).resolve("wrangler/package.json"));
const program = join(wrangler, "bin/wrangler.js");
const child = spawn(process.execPath, [program, "dev", "--var", `ORIGIN_URL:${origin}`, ...args], {
  stdio: "inherit",
});
// Ctrl-C reaches wrangler too. This process waits until wrangler has ended.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
const [code] = await once(child, "exit");
process.exit(code ?? 1);

async function startDemoOrigin() {
  const server = createServer((request, response) => {
    response.setHeader("content-type", "application/json");
    const { method, url } = request;
    response.end(`${JSON.stringify({ message: "Hello from the demo origin.", method, url })}\n`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${server.address().port}`;
}
