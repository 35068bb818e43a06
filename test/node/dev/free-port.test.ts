import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { choosePort, DEFAULT_PORT } from "../../../dev/free-port.ts";
import { type Listening, listen } from "../../../dev/loopback.ts";

/** Listens on the port that `choosePort` chooses by default: 8787, or the next free port. */
async function listenOnFirst(): Promise<Listening> {
  for (let attempt = 1; ; attempt++) {
    const port = await choosePort();
    try {
      return await listen(createServer(), { port });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE" || attempt === 5) throw error;
    }
  }
}

describe("choosePort", () => {
  it("chooses the requested port", async () => {
    const { port, stop } = await listen(createServer());
    await stop();
    expect(await choosePort(port)).toBe(port);
  });

  it("rejects a requested port that is in use, and chooses no other port", async () => {
    const { port, stop } = await listen(createServer());
    await expect(choosePort(port)).rejects.toThrow(`Port ${port} is in use`);
    await stop();
  });

  it("chooses 8787 or the next free port if none was requested", async () => {
    const { port: first, stop } = await listenOnFirst();
    expect(first).toBeGreaterThanOrEqual(DEFAULT_PORT);
    expect(await choosePort()).toBeGreaterThan(first);
    await stop();
  });
});
