import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { choosePort, DEFAULT_PORT } from "../../../dev/free-port.ts";
import { type Listening, listen } from "../../../dev/loopback.ts";

/** Listens where `npm run dev` would; another run of it on this machine may come first. */
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
  it("takes the port that was asked for", async () => {
    const { port, stop } = await listen(createServer());
    await stop();
    expect(await choosePort(port)).toBe(port);
  });

  it("refuses a port that is in use, and takes no other instead", async () => {
    const { port, stop } = await listen(createServer());
    await expect(choosePort(port)).rejects.toThrow(`Port ${port} is in use`);
    await stop();
  });

  it("takes 8787 or the next free one when none was asked for", async () => {
    const { port: first, stop } = await listenOnFirst();
    expect(first).toBeGreaterThanOrEqual(DEFAULT_PORT);
    expect(await choosePort()).toBeGreaterThan(first);
    await stop();
  });
});
