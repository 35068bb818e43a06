import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { choosePort, DEFAULT_PORT } from "../../../dev/free-port.ts";
import { listen } from "../../../dev/loopback.ts";

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
    const first = await choosePort();
    expect(first).toBeGreaterThanOrEqual(DEFAULT_PORT);
    const { stop } = await listen(createServer(), { port: first });
    expect(await choosePort()).toBeGreaterThan(first);
    await stop();
  });
});
