/**
 * `npm run dev`. It starts `wrangler dev`, and prints what to try at the address that wrangler has chosen. Without an
 * origin in the arguments, a demo origin answers every request with 200. To use an origin of your own:
 *
 *   npm run dev -- --origin http://localhost:3000
 *
 * All other arguments go to `wrangler dev`. With `-c`, its configurations name the Worker that is the origin.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** The folder in which wrangler keeps its own files. Git ignores it. */
const FOLDER = ".wrangler";
mkdirSync(FOLDER, { recursive: true });

const args = process.argv.slice(2);
const flag = args.indexOf("--origin");
const [, ownOrigin] = flag === -1 ? [] : args.splice(flag, 2);
const isService = args.includes("-c");
const origin = isService ? undefined : (ownOrigin ?? (await startDemoOrigin()));
const token = adminToken();
const vars = { ...(origin && { ORIGIN_URL: origin }), ...token.vars };

const wrangler = dirname(createRequire(import.meta.url).resolve("wrangler/package.json"));
const child = spawn(
  process.execPath,
  [
    join(wrangler, "bin/wrangler.js"),
    "dev",
    // The list of keys would overwrite the lines that this file prints.
    "--show-interactive-dev-session=false",
    ...Object.entries(vars).flatMap(([name, value]) => ["--var", `${name}:${value}`]),
    ...args,
  ],
  {
    // By the last channel, wrangler tells its port: if 8787 is in use, it takes another.
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env: { ...process.env, WEIR_CHECK_PRINTED: checkPrinted() },
  },
);
child.on("message", (message) => {
  const { event, port } = JSON.parse(message);
  if (event === "DEV_SERVER_READY") console.log(linesToTry(`http://localhost:${port}`));
});
// Ctrl-C reaches wrangler too. This process waits until wrangler has ended.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
const [code] = await once(child, "exit");
process.exit(code ?? 1);

function linesToTry(url) {
  const from = isService ? "the Worker that wrangler.toml binds as API" : origin;
  return `
Weir answers at ${url}
  origin: ${from}${isService || ownOrigin ? "" : ", a demo"}

Send six logins. The sixth gets 429:

  for i in 1 2 3 4 5 6; do curl -s -o /dev/null -w '%{http_code}\\n' -X POST ${url}/login; done

See who is limited, and change limits, in the dashboard or on the command line:

  ${url}/_weir/login
  token: ${token.shown}

  ${token.setting}npx weir top --at ${url}

Press Ctrl-C to stop.
`;
}

/**
 * The token of the dashboard: WEIR_ADMIN_TOKEN of .dev.vars, or of .env, which wrangler reads if there is no .dev.vars.
 * Without one, it is a random token. A file keeps it, so that browsers stay logged in after a new start.
 */
function adminToken() {
  const [, env] = /(?:^| )(?:--env|-e)[ =](\S+)/.exec(args.join(" ")) ?? [];
  const own = [`.dev.vars.${env}`, ".dev.vars"].find((name) => existsSync(name));
  const files = own ? [own] : [`.env.${env}`, ".env.local", ".env"];
  const isSet = (name) =>
    /^\s*WEIR_ADMIN_TOKEN\s*=\s*["']?[^\s"'#]/m.test(readFileSync(name, "utf8"));
  const file = files.find((name) => existsSync(name) && isSet(name));
  if (file) return { vars: {}, shown: `WEIR_ADMIN_TOKEN of ${file}`, setting: "" };

  const kept = join(FOLDER, "dev-admin-token");
  if (!existsSync(kept)) {
    writeFileSync(kept, randomBytes(24).toString("base64url"), { mode: 0o600 });
  }
  const value = readFileSync(kept, "utf8").trim();
  return {
    vars: { WEIR_ADMIN_TOKEN: value },
    shown: value,
    setting: `WEIR_ADMIN_TOKEN=${value} `,
  };
}

/** The file with the report that `weir check` has printed. wrangler 4.86 runs the check three times at its start. */
function checkPrinted() {
  const file = join(FOLDER, "weir-check-printed");
  rmSync(file, { force: true });
  return file;
}

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
