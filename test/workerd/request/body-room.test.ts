import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { llmReserve } from "../../../src/llm/index.ts";
import { MAX_TOKENS } from "../../../src/llm/token-counts.ts";
import { BodyRoom, CLIENT_PARTS, MAX_BODY_BYTES } from "../../../src/request/body-room.ts";
import { CustomCalls } from "../../../src/request/custom-calls.ts";

const MIB = 1024 * 1024;
const TIMEOUT_MS = 100;
const NOW = 1_800_000_000_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"], now: NOW });
});

afterEach(() => {
  vi.useRealTimers();
});

describe("the room for bodies", () => {
  /** Takes room in small steps, as a body that arrives, and returns the bytes taken. */
  function fill(room: BodyRoom, client: string, bytes = MAX_BODY_BYTES): number {
    const share = room.open(client, NOW + 1);
    let taken = 0;
    while (taken < bytes && room.take(share, 1024)) taken += 1024;
    return taken;
  }

  it("gives all bodies of one client an eighth, and those of a hundred clients less than all", () => {
    const room = new BodyRoom();
    expect(fill(room, "one")).toBe(MAX_BODY_BYTES / CLIENT_PARTS);
    expect(fill(room, "one")).toBe(0);
    const others = Array.from({ length: 99 }, (_, at) => fill(room, `client ${at}`));
    const sum = others.reduce((total, each) => total + each, MAX_BODY_BYTES / CLIENT_PARTS);
    expect(sum).toBeLessThan(MAX_BODY_BYTES);
  });

  it("leaves other clients their room beside 300 bodies of a client that take all they get", () => {
    const room = new BodyRoom();
    const shares = new Set(Array.from({ length: 300 }, () => room.open("one", NOW + 1)));
    while (shares.size > 0) {
      for (const share of shares) if (!room.take(share, 1024)) shares.delete(share);
    }
    expect(fill(room, "other", 3 * MIB)).toBe(3 * MIB);
  });

  it("gets the room of a body back once, and that of a killed invocation when its time has ended", () => {
    const room = new BodyRoom();
    const share = room.open("one", NOW + 1);
    expect(room.take(share, 4 * MIB)).toBe(true);
    room.close(share);
    room.close(share);
    expect(fill(room, "one")).toBe(4 * MIB);
    expect(room.take(room.open("one", NOW + 1), MIB)).toBe(false);
    vi.setSystemTime(NOW + 1);
    expect(room.take(room.open("one", NOW + 2), 4 * MIB)).toBe(true);
  });
});

describe("a function that reads a clone", () => {
  /** The calls of one request to a function for costs. */
  function callsOf(
    body: BodyInit,
    compute: (request: Request) => Promise<number>,
    length?: number,
  ) {
    const headers: HeadersInit = length === undefined ? {} : { "content-length": String(length) };
    const request = new Request("https://api.example.com/", { method: "POST", body, headers });
    const calls = new CustomCalls({
      functions: { costs: new Map([["size", compute]]) },
      request: request as never,
      context: { env: {} as never, ctx: { waitUntil() {} } },
      timeoutMs: TIMEOUT_MS,
      arrivedAt: Date.now(),
      onKeyFailure: () => {},
    });
    return { request, calls, cost: calls.computeCost("size") };
  }

  const sizeOf = async (request: Request) => (await request.clone().arrayBuffer()).byteLength;
  const bytes = (length: number) => new Uint8Array(length).fill(0x61);
  /** A body that stalls after these bytes. */
  function stalling(length: number, onCancel = () => {}) {
    return new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(bytes(length)),
      cancel: onCancel,
    });
  }

  it.each([0, 1, 100_000, 3 * MIB])("gets all %i bytes, and so does the origin", async (length) => {
    const { calls, cost, request } = callsOf(bytes(length), sizeOf);
    expect(await cost).toEqual({ value: length });
    calls.close();
    expect((await request.arrayBuffer()).byteLength).toBe(length);
  });

  it("fails for a body that is too long, which the origin gets as a whole", async () => {
    const { calls, cost, request } = callsOf(bytes(5 * MIB), sizeOf);
    expect(await cost).toEqual({ failure: "threw" });
    calls.close();
    expect((await request.clone().arrayBuffer()).byteLength).toBe(5 * MIB);
    expect((await request.arrayBuffer()).byteLength).toBe(5 * MIB);
  });

  it("takes room until its request is decided, and no longer", async () => {
    const open = Array.from({ length: 40 }, () => callsOf(bytes(MIB), sizeOf, MIB));
    const results = await Promise.all(open.map(({ cost }) => cost));
    const failed = results.filter(({ failure }) => failure === "threw").length;
    expect(failed).toBeGreaterThan(0);
    expect(failed).toBeLessThan(40);
    for (const { calls } of open) calls.close();
    const after = callsOf(bytes(3 * MIB), sizeOf);
    expect(await after.cost).toEqual({ value: 3 * MIB });
    after.calls.close();
  });

  it("ends at the deadline if the body stalls, and leaves its room to others", async () => {
    let ended = "";
    const open = Array.from({ length: 40 }, () =>
      callsOf(
        stalling(MIB),
        (request) =>
          sizeOf(request).catch((error: Error) => {
            ended = error.message;
            throw error;
          }),
        2 * MIB,
      ),
    );
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS);
    const results = await Promise.all(open.map(({ cost }) => cost));
    expect(new Set(results.map(({ failure }) => failure))).toEqual(new Set(["timeout", "threw"]));
    for (const { calls } of open) calls.close();
    await vi.waitFor(() => expect(ended).toBe("The body has not arrived in time."));
    const after = callsOf(bytes(3 * MIB), sizeOf);
    expect(await after.cost).toEqual({ value: 3 * MIB });
    after.calls.close();
  });

  it("reads on for a shadow rule when the request is decided", async () => {
    const through = new TransformStream<Uint8Array, Uint8Array>();
    const { calls, cost } = callsOf(through.readable, sizeOf);
    const writer = through.writable.getWriter();
    await writer.write(bytes(1000));
    calls.close();
    await writer.write(bytes(1000));
    await writer.close();
    expect(await cost).toEqual({ value: 2000 });
  });

  it("leaves its room to others although its invocation was killed", async () => {
    for (let at = 0; at < 40; at++) callsOf(bytes(MIB), sizeOf);
    await vi.advanceTimersByTimeAsync(2 * TIMEOUT_MS);
    const after = callsOf(bytes(3 * MIB), sizeOf);
    expect(await after.cost).toEqual({ value: 3 * MIB });
    after.calls.close();
  });

  it.each(["stated", "not stated"])(
    "estimates all tokens without room: length %s",
    async (length) => {
      const body = JSON.stringify({ max_tokens: 1, text: "a".repeat(1000 * 1000) });
      const stated = length === "stated" ? body.length : undefined;
      const pieces = () => (stated ? body : new Blob([body]).stream());
      const open = Array.from({ length: 60 }, () => callsOf(pieces(), llmReserve(), stated));
      const results = await Promise.all(open.map(({ cost }) => cost));
      for (const { calls } of open) calls.close();
      const values = new Set(results.map(({ value }) => value));
      // Of bodies without a stated length that arrive at the same moment, none may find room.
      const estimate = Math.ceil(body.length / 4) + 1;
      expect(values).toContain(2 * MAX_TOKENS);
      if (stated) expect(values).toEqual(new Set([estimate, 2 * MAX_TOKENS]));
    },
  );
});
