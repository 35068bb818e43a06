import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, expect, it, vi } from "vitest";
import { PATIENCE } from "../../patience.ts";
import { send } from "../support/client.ts";
import { limitsOf } from "../support/quota-fields.ts";
import { useServers } from "../support/servers.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";

const MIB = 1024 * 1024;
const CLIENTS = 300;
/** Without a bound for the bodies, the memory grew by more than 700 MiB in each case. */
const GROWTH_BYTES = 450 * MIB;
const TIMEOUT_MS = 2000;
const LIMIT = 1_000_000_000;
const MAX_COST = 1000;

const servers = useServers();
const sockets: Socket[] = [];
let worker: RunningWorker | undefined;

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await worker?.stop();
});

/** Sends most of a body, and then nothing. */
async function stall({ url }: RunningWorker, head: string, start: string): Promise<void> {
  const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true });
  socket.on("error", () => {}).resume();
  sockets.push(socket);
  await once(socket, "connect");
  const fields = `Host: a.example\r\nCF-Connecting-IP: 203.0.113.1\r\n${head}`;
  socket.write(`POST /call HTTP/1.1\r\n${fields}\r\n\r\n${start}`);
  socket.write(Buffer.alloc(MIB - 2000, "a"));
}

it.each<[what: string, head: string, start: string, max: number]>([
  ["pass", `Content-Length: ${MIB - 1000}`, "", MAX_COST],
  ["are denied", `Content-Length: ${MIB - 1000}`, "", 2 * LIMIT],
  ["state no length", "Transfer-Encoding: chunked", `${(MIB - 1000).toString(16)}\r\n`, MAX_COST],
])(
  "300 bodies of 1 MB that stall and %s leave memory, and room for others",
  async (_, head, start, max) => {
    const cost = { from: "custom:estimate", max } as const;
    const config = {
      rules: [{ name: "tokens", limit: LIMIT, window: "1d", cost }],
      prefix: `stalled-${randomUUID()}`,
      timeoutMs: TIMEOUT_MS,
    } as const;
    worker = await startWorker({
      config,
      main: `
      import { defineConfig, llmReserve, weir } from "./weir.mjs";
      const custom = { costs: { estimate: llmReserve() } };
      export default weir(defineConfig({ ...${JSON.stringify(config)}, custom }));
    `,
      vars: servers.varsFor("upstash"),
    });
    servers.origin.on("/call", (request, response) => {
      request.on("end", () => response.end("done"));
    });
    const { url, logs } = worker;
    const costOf = async (address: string) => {
      const body = JSON.stringify({ max_tokens: 50, text: "a".repeat(20_000) });
      const headers = { "CF-Connecting-IP": address };
      const answer = await send(url, "/call", { method: "POST", headers, body });
      return LIMIT - Number(limitsOf(answer.headers)[0]?.r);
    };
    const expected = Math.min(max, await costOf("203.0.113.2"));
    const before = worker.residentBytes();
    for (let at = 0; at < CLIENTS; at++) await stall(worker, head, start);
    expect(await costOf("203.0.113.3")).toBe(expected);
    // The first bodies have reached their deadline.
    await vi.waitFor(() => expect(logs().join()).toContain("cost-unreadable"), PATIENCE);
    expect(worker.residentBytes() - before).toBeLessThan(GROWTH_BYTES);
    expect(await costOf("203.0.113.4")).toBe(expected);
  },
);
