import { reset } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

// The tests stop the clock just before the end of a minute.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2026-01-01T12:00:58Z") });
});

afterEach(async () => {
  vi.useRealTimers();
  // Deletes all counters.
  await reset();
});

/** Sends a login from an address, and returns the response. */
function login(address: string): Promise<Response> {
  return exports.default.fetch("https://api.example.com/login", {
    method: "POST",
    headers: { "cf-connecting-ip": address },
  });
}

it("denies the sixth login of a minute", async () => {
  for (let count = 1; count <= 5; count++) {
    expect((await login("203.0.113.7")).status).toBe(200);
  }
  const sixth = await login("203.0.113.7");
  expect(sixth.status).toBe(429);
  // Weir counts the logins in steps of six seconds. So these count until 12:02:00.
  expect(sixth.headers.get("retry-after")).toBe("62");
});

it("counts each address separately", async () => {
  for (let count = 1; count <= 6; count++) await login("203.0.113.7");
  expect((await login("203.0.113.8")).status).toBe(200);
});

it("counts the logins of the last minute, not those of a minute of the clock", async () => {
  for (let count = 1; count <= 5; count++) await login("203.0.113.7");
  vi.advanceTimersByTime(4000);
  expect((await login("203.0.113.7")).status).toBe(429);
  vi.advanceTimersByTime(58_000);
  expect((await login("203.0.113.7")).status).toBe(200);
});
