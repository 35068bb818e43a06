import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type DevProxy, startDevProxy } from "../../../dev/dev-proxy.ts";
import { sendRaw } from "../../evasion/target.ts";
import { PATIENCE } from "../../patience.ts";
import { open, send } from "../support/client.ts";
import { closedPort, type Origin, startOrigin } from "../support/origin.ts";
import { echoFrames, HANDSHAKE, TEXT, writeFrame } from "../support/websocket.ts";

let behind: Origin;
let front: DevProxy;
let url: URL;

beforeAll(async () => {
  behind = await startOrigin();
  behind.onUpgrade(echoFrames);
  front = await startDevProxy(addressOf(behind.address));
  url = new URL(front.url);
});

afterAll(async () => {
  await front.stop();
  await behind.stop();
});

function addressOf(address: string) {
  const [host = "", port] = address.split(":");
  return { host, port: Number(port) };
}

function raw(target: string, ...hosts: string[]) {
  const fields = hosts.map((host) => `Host: ${host}`);
  return sendRaw(url, { lines: [`GET ${target} HTTP/1.1`, ...fields, "Connection: close"] });
}

describe("the proxy in front of wrangler dev", () => {
  it.each([
    ["/login", ["a.example", "b.example"]],
    ["/login", ["a.example", "a.example"]],
    ["/login", ["api.example.com#"]],
    ["/login", ["api.example.com?"]],
    ["/login", ["api.example.com\\x"]],
    ["/login", ["user@api.example.com"]],
    ["/login", ["api example.com"]],
    ["/login", ["api.example.com:99999"]],
    ["/login", ["a.example, b.example"]],
    ["/login", ["[::1"]],
    ["/login", [""]],
    ["/login", []],
    ["*", ["api.example.com"]],
    ["http://api.example.com#/login", ["api.example.com"]],
  ])("answers 400 to %s with the hosts %j", async (target, hosts) => {
    const before = behind.received.length;
    expect((await raw(target, ...hosts)).status).toBe(400);
    expect(behind.received).toHaveLength(before);
  });

  it.each(["/", "/a/../b?c#d", "//a\\b", "/%zz", "http://other.example/login"])(
    "passes on %s unchanged",
    async (target) => {
      expect((await raw(target, "api.example.com:8080")).status).toBe(200);
      expect(behind.received.at(-1)).toMatchObject({
        url: target,
        headers: { host: "api.example.com:8080" },
      });
    },
  );

  it("passes on bodies, repeated fields and statuses", async () => {
    behind.on("/echo", async (_, response) => {
      const body = await behind.received.at(-1)?.body;
      response.writeHead(429, { "set-cookie": ["a=1", "b=2"], "retry-after": "7" }).end(body);
    });
    const body = randomBytes(200_000);
    const answer = await send(url, "/echo", {
      method: "PUT",
      headers: { "x-a": ["1", "2"] },
      body,
    });
    expect(answer.status).toBe(429);
    expect(answer.headers).toMatchObject({ "set-cookie": ["a=1", "b=2"], "retry-after": "7" });
    expect(answer.body.equals(body)).toBe(true);
    expect(behind.received.at(-1)?.headers["x-a"]).toBe("1, 2");
  });

  it("passes on WebSockets", async () => {
    const sending = open(url, "/socket", { headers: HANDSHAKE }).end();
    const [response, socket] = (await once(sending, "upgrade")) as [IncomingMessage, Duplex];
    expect(response.statusCode).toBe(101);
    socket.write(writeFrame({ opcode: TEXT, payload: Buffer.from("hello") }, Buffer.alloc(4)));
    expect(String((await once(socket, "data"))[0])).toContain("hello");
    socket.destroy();
  });

  it("answers 502 while wrangler dev does not listen", async () => {
    const early = await startDevProxy(addressOf(await closedPort()));
    expect((await send(new URL(early.url), "/")).status).toBe(502);
    await early.stop();
  });

  it("answers 503 with the reason while requests are held, and passes them on afterwards", async () => {
    let reason: string | undefined = "weir.config.ts is missing.";
    const held = await startDevProxy(addressOf(behind.address), { whyHeld: async () => reason });
    behind.on("/held", () => {});
    const refused = { status: 503, headers: { "content-type": "application/problem+json" } };
    for (const path of ["/held", "/next"]) {
      const answer = await send(new URL(held.url), path, {
        method: "POST",
        body: Buffer.from("a"),
      });
      expect(answer).toMatchObject(refused);
      expect(JSON.parse(String(answer.body))).toMatchObject({ detail: reason });
    }
    // Requests after the first are not passed on, so that no counter counts them later.
    expect(behind.received.at(-1)?.url).toBe("/held");
    reason = undefined;
    expect((await send(new URL(held.url), "/next")).status).toBe(200);
    await held.stop();
  });

  it("waits for a slow answer while requests are not held", async () => {
    let asked = 0;
    const patient = await startDevProxy(addressOf(behind.address), {
      async whyHeld() {
        asked++;
        return undefined;
      },
    });
    behind.on("/late", async (_, response) => {
      await vi.waitUntil(() => asked > 0, PATIENCE);
      response.end("late");
    });
    expect(String((await send(new URL(patient.url), "/late")).body)).toBe("late");
    await patient.stop();
  });

  it("closes its connection to wrangler dev when the client hangs up", async () => {
    const begun = Promise.withResolvers<IncomingMessage>();
    behind.on("/slow", (incoming) => begun.resolve(incoming));
    const sending = open(url, "/slow");
    sending.on("error", () => {}).end();
    const arrived = await begun.promise;
    sending.destroy();
    await once(arrived.socket, "close");
  });
});
