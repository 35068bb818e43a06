import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createDashboard, NOW } from "./dashboard.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: NOW, toFake: ["Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const PATHS = ["/", "/rules", "/rules/search", "/clients", "/overrides", "/audit"];

describe.each(PATHS)("GET /_weir%s", (path) => {
  it("answers with a page", async () => {
    const response = await createDashboard().request(path);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/html; charset=UTF-8");
    expect(await response.text()).toMatch(/^<!doctype html><html lang="en".*<\/html>$/s);
  });
});
