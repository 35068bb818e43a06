import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { fileURLToPath, URL } from "node:url";
import getPort from "get-port";
import { afterEach, expect, it } from "vitest";
import { listen } from "../../../dev/loopback.ts";
import { sendRaw } from "../../evasion/target.ts";
import { refuses } from "./refuses.ts";

const PROGRAM = fileURLToPath(new URL("../../../dev/dev.ts", import.meta.url));
const START_TIMEOUT_MS = 120_000;

const running: ChildProcess[] = [];

afterEach(() => {
  for (const child of running.splice(0)) child.kill("SIGTERM");
});

/** Runs the command of `npm run dev`, and collects its output. */
function runDev(...args: string[]) {
  const { PORT, ORIGIN_URL, ...env } = process.env;
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.push(child);
  const ended = once(child, "close");
  let output = "";
  const printed = new Promise<string>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
        if (output.includes("Press Ctrl-C to stop")) resolve(output);
      });
    }
    ended.then(() => resolve(output));
  });
  return { child, printed, ended: ended.then(([code]) => ({ code, output })) };
}

it.each([
  { args: ["--traffic"], store: /counting in: a Durable Object/, addresses: 2 },
  { args: ["--redis"], store: /counting in: (js-)?redis-server \d/, addresses: 4 },
])(
  "runs the Worker in front of the demo origin, with $args, and ends all processes",
  async ({ args, store, addresses }) => {
    // Each run gets its own port here. If the program chose a port itself, it would listen on the
    // port only seconds later, so two runs could choose the same port.
    const port = await getPort({ host: "127.0.0.1" });
    const { child, printed, ended } = runDev("--port", `${port}`, ...args);
    const text = await printed;
    expect(text).toMatch(store);
    expect(text).toContain(`http://localhost:${port}/_weir/login`);
    expect(text.includes("Invented traffic runs")).toBe(args.includes("--traffic"));

    const url = /Weir answers at (\S+)/.exec(text)?.[1];
    const response = await fetch(`${url}/some/path`);
    expect(await response.json()).toMatchObject({ path: "/some/path" });

    for (const hosts of [["a.example", "b.example"], ["api.example.com#"]]) {
      const lines = ["GET /x HTTP/1.1", ...hosts.map((host) => `Host: ${host}`)];
      const { status } = await sendRaw(new URL(url as string), {
        lines: [...lines, "Connection: close"],
      });
      expect({ hosts, status }).toEqual({ hosts, status: 400 });
    }

    const block = text.slice(text.indexOf("Weir answers at"), text.indexOf("curl"));
    const ports = new Set(
      [...block.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port)),
    );
    expect(ports.size).toBe(addresses);
    for (const port of ports) expect(await refuses({ host: "127.0.0.1", port })).toBe(false);

    child.kill("SIGINT");
    expect(await ended).toMatchObject({ code: 0 });
    for (const port of ports) expect(await refuses({ host: "127.0.0.1", port })).toBe(true);
  },
  START_TIMEOUT_MS,
);

it(
  "says where the first run in the folder listens, and has a state of its own until it ends",
  async () => {
    await runDev("--port", `${await getPort({ host: "127.0.0.1" })}`).printed;
    const port = await getPort({ host: "127.0.0.1" });
    const { child, printed, ended } = runDev("--port", `${port}`);
    expect(await printed).toMatch(/already runs in this folder, at http:\/\/127\.0\.0\.1:\d+\. /);
    const state = fileURLToPath(new URL(`../../../.wrangler/state-${port}`, import.meta.url));
    expect(existsSync(state)).toBe(true);
    child.kill("SIGINT");
    expect(await ended).toMatchObject({ code: 0 });
    expect(existsSync(state)).toBe(false);
  },
  2 * START_TIMEOUT_MS,
);

it("exits with 1 and prints why if the port is in use", async () => {
  const { port, stop } = await listen(createServer());
  const { code, output } = await runDev("--port", `${port}`).ended;
  expect({ code, output }).toMatchObject({ code: 1, output: expect.stringContaining("in use") });
  await stop();
});

it("exits with 1 and prints the allowed values if an option is wrong", async () => {
  const { code, output } = await runDev("--port", "eighty").ended;
  expect({ code, output }).toMatchObject({ code: 1, output: expect.stringContaining("Allowed:") });
});
