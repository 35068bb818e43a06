import { once } from "node:events";
import { request } from "node:http";
import { json } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type DemoOrigin, startDemoOrigin } from "../../../dev/demo-origin.ts";

let origin: DemoOrigin;

beforeAll(async () => {
  origin = await startDemoOrigin();
});
afterAll(() => origin.stop());

it.each([
  ["GET", "/", { path: "/", query: {} }],
  ["POST", "/login?next=%2Fhome", { path: "/login", query: { next: "/home" } }],
  ["DELETE", "//a//%2F", { path: "//a//%2F", query: {} }],
])("answers %s %s with the method, path and query received", async (method, path, received) => {
  const response = await fetch(origin.url + path, { method });
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({
    message: "Hello from the demo origin.",
    method,
    ...received,
  });
});

it.each(["//", "*", "http://other.example/x", "/a/../b"])(
  "reports the target %s unchanged",
  async (path) => {
    const { hostname, port } = new URL(origin.url);
    const [response] = await once(
      request({ hostname, port, path, method: "OPTIONS" }).end(),
      "response",
    );
    expect(response.statusCode).toBe(200);
    expect(await json(response)).toMatchObject({ path });
  },
);

it("listens on loopback only", () => {
  expect(origin.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
});
