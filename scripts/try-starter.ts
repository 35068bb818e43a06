/**
 * `npm run try:starter`: installs the packed packages as a user does, with npm and with the oldest and
 * the newest Node that Weir supports. For each Node, it creates a project and adds Weir to a Hono app,
 * starts `npm run dev`, and sends six logins. It fails if the sixth login does not get 429, or if npm
 * prints a warning about the version of Node. It needs the npm registry, and takes some minutes.
 *
 * Run `npm run pack` first.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import getPort from "get-port";

/** Each Node with its own npm. */
const VERSIONS = [
  { node: "20.19.6", npm: "10.8.2" },
  { node: "22.12.0", npm: "10.9.0" },
  { node: "24.21.0", npm: "11.19.1" },
];

/** The maximum duration of the starter, and of the start of `npm run dev`, in milliseconds. */
const START_MS = 120_000;

const DIST = join(import.meta.dirname, "../dist");
const VERSION = process.env.npm_package_version ?? "0.1.0";
const WEIR = join(DIST, `edge-weir-${VERSION}.tgz`);
const STARTER = `file:${join(DIST, `create-edge-weir-${VERSION}.tgz`)}`;

/** A Hono app as `npm create hono` writes it, without comments. Newer versions of wrangler refuse Node 20. */
const honoApp = (node: string): Readonly<Record<string, string>> => ({
  "package.json": JSON.stringify({
    type: "module",
    scripts: { dev: "wrangler dev" },
    dependencies: { hono: "^4.13.3" },
    devDependencies: { wrangler: node.startsWith("20.") ? "4.86.0" : "^4.110.0" },
  }),
  "wrangler.jsonc": JSON.stringify({
    name: "app",
    main: "src/index.ts",
    compatibility_date: "2025-08-03",
  }),
  "src/index.ts": "import { Hono } from 'hono'\n\nconst app = new Hono()\n\nexport default app\n",
});

const scratch = await mkdtemp(join(tmpdir(), "try-starter-"));
try {
  for (const { node, npm } of VERSIONS) {
    const env = await environmentOf(node, npm);
    const create = ["--yes", `--package=${STARTER}`, "create-edge-weir", "--edge-weir", WEIR];

    const project = join(scratch, node, "project");
    await mkdir(project, { recursive: true });
    await tryIn(project, `Node ${node}, a new project`, "200", [...create, "--yes"], env);

    const app = join(scratch, node, "app");
    await mkdir(join(app, "src"), { recursive: true });
    for (const [path, text] of Object.entries(honoApp(node)))
      await writeFile(join(app, path), text);
    await tryIn(app, `Node ${node}, a Hono app`, "404", create, env);
  }
} finally {
  await rm(scratch, { recursive: true, force: true });
}

/** Installs a Node and an npm, and returns an environment that prefers them. */
async function environmentOf(node: string, npm: string): Promise<NodeJS.ProcessEnv> {
  const folder = join(scratch, `node-${node}`);
  await mkdir(folder);
  const platform = `node-${process.platform}-${process.arch}`;
  const args = ["install", "--ignore-scripts", "--prefix", folder];
  await promisify(execFile)("npm", [...args, `${platform}@${node}`, `npm@${npm}`]);
  const commands = join(folder, "node_modules/.bin");
  await rm(join(commands, "node"), { force: true });
  await symlink(join(folder, "node_modules", platform, "bin/node"), join(commands, "node"));
  // The other npm must not get the variables and the settings of this repository.
  const inherited = Object.entries(process.env).filter(
    ([name]) =>
      !/^(npm_(lifecycle|package|command|execpath|node|config_(local|strict))|INIT_CWD)/.test(name),
  );
  return {
    ...Object.fromEntries(inherited),
    PATH: [commands, process.env.PATH].join(delimiter),
    WRANGLER_SEND_METRICS: "false",
  };
}

/** Runs the starter in a folder, and checks the limit of the project under `npm run dev`. */
async function tryIn(
  folder: string,
  name: string,
  allowed: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const timeout = START_MS;
  const installing = await promisify(execFile)("npx", args, { cwd: folder, env, timeout });
  const printed = installing.stdout + installing.stderr;
  if (/EBADENGINE/.test(printed)) throw new Error(`${name}: ${printed}`);

  const port = await getPort();
  const dev = spawn("npm", ["run", "dev", "--", "--port", `${port}`], {
    cwd: folder,
    env,
    // A process group of its own, so that wrangler and workerd end with it.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [dev.stdout, dev.stderr]) stream.on("data", (text) => (output += text));
  const ended = once(dev, "exit");
  try {
    const statuses = await sixLogins(`http://localhost:${port}`);
    console.log(`${name}: ${statuses.join(" ")}`);
    const expected = [...Array(5).fill(allowed), "429"];
    if (statuses.join() !== expected.join()) throw new Error(`${name}: ${output}`);
  } finally {
    process.kill(-(dev.pid as number), "SIGTERM");
    await ended;
  }
}

/** Waits until the Worker answers, sends six logins, and returns their statuses. */
async function sixLogins(url: string): Promise<string[]> {
  const deadline = Date.now() + START_MS;
  while (!(await fetch(url).catch(() => undefined))) {
    if (Date.now() > deadline) throw new Error(`${url} does not answer.`);
    await delay(200);
  }
  const statuses: string[] = [];
  for (let count = 0; count < 6; count++) {
    statuses.push(`${(await fetch(`${url}/login`, { method: "POST" })).status}`);
  }
  return statuses;
}
