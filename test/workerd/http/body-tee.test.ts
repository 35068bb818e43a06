import { describe, expect, it } from "vitest";
import { BodyCopy, MAX_LAG_BYTES, teeResponse } from "../../../src/http/body-tee.ts";

const chunks = (count: number, bytes: number) =>
  new ReadableStream<Uint8Array>({
    pull(controller) {
      if (count-- > 0) controller.enqueue(new Uint8Array(bytes).fill(count % 256));
      else controller.close();
    },
  });

const OPTIONS = { isLengthExact: true, isRaw: true, timeoutMs: 1000 };

async function tee(response: Response) {
  const teed = await teeResponse(response, 1, OPTIONS);
  if (!teed) throw new Error("not copied");
  return { ...teed, copy: teed.copies[0] as Response };
}

describe("teeResponse", () => {
  it("gives the client and the copy the same bytes", async () => {
    const { response, copy, ended } = await tee(new Response(chunks(100, 999)));
    const [sent, copied] = await Promise.all([response.bytes(), copy.bytes()]);
    expect(sent).toEqual(copied);
    expect(sent).toHaveLength(99_900);
    await ended;
  });

  it("bounds the lag of a reader, but not the client", async () => {
    const { response, copy } = await tee(new Response(chunks(64, 32_768)));
    expect(await response.bytes()).toHaveLength(64 * 32_768);
    await expect(copy.bytes()).rejects.toThrow(`more than ${MAX_LAG_BYTES} bytes`);
  });

  it("merges small chunks that follow each other at once", async () => {
    const { response, copy } = await tee(new Response(chunks(20_000, 1)));
    let count = 0;
    for await (const _ of response.body as ReadableStream<Uint8Array>) count++;
    expect(count).toBeLessThan(10_000);
    expect(await copy.bytes()).toHaveLength(20_000);
  });

  it("gives a waiting reader a long chunk", async () => {
    const { response, copy } = await tee(new Response(chunks(3, 2 * MAX_LAG_BYTES)));
    const [sent, copied] = await Promise.all([response.bytes(), copy.bytes()]);
    expect([sent.length, copied.length]).toEqual([6 * MAX_LAG_BYTES, 6 * MAX_LAG_BYTES]);
  });

  it("fails the copy after the last chunk if the client hangs up", async () => {
    const { response, copy, ended } = await tee(new Response(chunks(9, 5)));
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await reader.cancel();
    await ended;
    const copied = (copy.body as ReadableStream<Uint8Array>).getReader();
    expect((await copied.read()).value).toHaveLength(5);
    await expect(copied.read()).rejects.toThrow();
  });

  it("offers a body with a known length to the client when its first bytes have arrived, and any other at once", async () => {
    for (const [headers, isAtOnce] of [
      [{ "content-length": "2" }, false],
      [{}, true],
    ] as const) {
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      const { offered, response, isRead } = await tee(new Response(readable, { headers }));
      let isOffered = false;
      offered.then(() => (isOffered = true));
      await scheduler.wait(1);
      expect([isOffered, isRead()]).toEqual([isAtOnce, false]);
      const writer = writable.getWriter();
      writer.write(new Uint8Array(2)).then(() => writer.close());
      await offered;
      expect(isRead()).toBe(false);
      await response.bytes();
      expect(isRead()).toBe(true);
    }
  });

  it("offers an empty body before it ends", async () => {
    const body = new ReadableStream<Uint8Array>({ start: (controller) => controller.close() });
    const { offered, ended } = await tee(
      new Response(body, { headers: { "content-length": "0" } }),
    );
    const order: string[] = [];
    await Promise.all([
      ended.then(() => order.push("ended")),
      offered.then(() => order.push("offered")),
    ]);
    expect(order).toEqual(["offered", "ended"]);
  });

  it("copies heads without a body, and refuses a status that no response can have", async () => {
    const empty = new Response(null, { status: 304, headers: { etag: '"x"' } });
    const { response, copy } = await tee(empty);
    expect(response).toBe(empty);
    expect([copy.status, copy.body, copy.headers.get("etag")]).toEqual([304, null, '"x"']);
    expect(await teeResponse(Response.error(), 1, OPTIONS)).toBeUndefined();
  });
});

describe("BodyCopy", () => {
  it("bounds the number of tiny chunks that a reader has not read", async () => {
    const copy = new BodyCopy();
    for (let chunk = 0; chunk < 20_000; chunk++) copy.push(new Uint8Array(1));
    await expect(new Response(copy.stream).bytes()).rejects.toThrow(`${MAX_LAG_BYTES} bytes`);
  });
});
