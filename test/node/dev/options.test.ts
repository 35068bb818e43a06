import { beforeEach, describe, expect, it, vi } from "vitest";
import { type DevOptions, parseOptions } from "../../../dev/options.ts";

describe("parseOptions", () => {
  const printed = vi.fn();

  beforeEach(() => {
    vi.stubEnv("PORT", undefined);
    vi.stubEnv("ORIGIN_URL", undefined);
    printed.mockClear();
    vi.spyOn(process.stdout, "write").mockImplementation(printed);
    vi.spyOn(process.stderr, "write").mockImplementation(printed);
    return () => {
      vi.unstubAllEnvs();
      vi.restoreAllMocks();
    };
  });

  it.each<[string[], DevOptions]>([
    [[], { redis: false, traffic: false }],
    [["--redis"], { redis: true, traffic: false }],
    [["--traffic"], { redis: false, traffic: true }],
    [["--port", "1"], { redis: false, traffic: false, port: 1 }],
    [["--port=65535"], { redis: false, traffic: false, port: 65_535 }],
    [
      ["--origin", "http://localhost:3000"],
      { redis: false, traffic: false, origin: "http://localhost:3000" },
    ],
    [
      ["--origin", "https://example.com/base"],
      { redis: false, traffic: false, origin: "https://example.com/base" },
    ],
  ])("reads %j", (args, options) => {
    expect(parseOptions(args)).toEqual(options);
  });

  it("reads PORT and ORIGIN_URL", () => {
    vi.stubEnv("PORT", "3000");
    vi.stubEnv("ORIGIN_URL", "http://localhost:4000");
    expect(parseOptions([])).toEqual({
      redis: false,
      traffic: false,
      port: 3000,
      origin: "http://localhost:4000",
    });
  });

  it("prefers the command line to the environment", () => {
    vi.stubEnv("PORT", "nonsense");
    vi.stubEnv("ORIGIN_URL", "http://localhost:4000");
    expect(parseOptions(["--port", "3001", "--origin", "http://localhost:5000"])).toEqual({
      redis: false,
      traffic: false,
      port: 3001,
      origin: "http://localhost:5000",
    });
  });

  it.each(["0", "65536", "-1", "80.5", "1e3", "0x50", "http", ""])(
    "rejects port %j with the allowed values",
    (port) => {
      expect(() => parseOptions([`--port=${port}`])).toThrow(
        `'--port <n>' argument '${port}' is invalid. Allowed: a whole number from 1 to 65535.`,
      );
    },
  );

  it("names the environment variable with an invalid port", () => {
    vi.stubEnv("PORT", "99999");
    expect(() => parseOptions([])).toThrow("value '99999' from env 'PORT' is invalid");
  });

  it.each(["localhost:3000", "example.com", "ftp://example.com", "http://", ""])(
    "rejects origin %j with the allowed values",
    (origin) => {
      expect(() => parseOptions([`--origin=${origin}`])).toThrow(
        `'--origin <url>' argument '${origin}' is invalid. Allowed: a whole URL with http or https`,
      );
    },
  );

  it.each([
    [["--prot", "1"], "Did you mean --port?"],
    [["8787"], "too many arguments"],
  ])("rejects %j", (args, message) => {
    expect(() => parseOptions(args)).toThrow(expect.objectContaining({ exitCode: 1 }));
    expect(printed).toHaveBeenCalledWith(expect.stringContaining(message));
  });

  it("prints the help, without an error", () => {
    expect(() => parseOptions(["--help"])).toThrow(expect.objectContaining({ exitCode: 0 }));
    expect(printed).toHaveBeenCalledWith(expect.stringMatching(/--port.*--origin/s));
  });
});
