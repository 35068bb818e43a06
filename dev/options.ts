import { Command, InvalidArgumentError, Option } from "commander";
import { DEFAULT_PORT } from "./free-port.ts";

/** How to run Weir locally. */
export type DevOptions = {
  /** Count in Redis, as in production, and not in the embedded store. */
  redis: boolean;
  /** The port that was asked for; without one, the first that is free. */
  port?: number;
  /** The origin to stand in front of; without one, the demo origin. */
  origin?: string;
};

/**
 * Reads the command line, and what it leaves open from the environment variables `PORT` and
 * `ORIGIN_URL`.
 *
 * @param args the arguments alone, without the program's name.
 * @throws {CommanderError} after printing what is wrong, or the help that was asked for; its
 * `exitCode` says which.
 */
export function parseOptions(args: readonly string[]): DevOptions {
  const given = new Command("npm run dev --")
    .description("Runs Weir on this machine: no account, and no Redis unless it is asked for.")
    .option("--redis", "count in Redis through the REST API, as in production")
    .addOption(
      new Option("--port <n>", `port to listen on (default: ${DEFAULT_PORT}, or the next free one)`)
        .env("PORT")
        .argParser(parsePort),
    )
    .addOption(
      new Option("--origin <url>", "origin to protect (default: a demo origin)")
        .env("ORIGIN_URL")
        .argParser(parseOrigin),
    )
    .exitOverride()
    .parse(args, { from: "user" })
    .opts<Partial<DevOptions>>();
  return { redis: false, ...given };
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535) {
    throw new InvalidArgumentError("Allowed: a whole number from 1 to 65535.");
  }
  return port;
}

function parseOrigin(text: string): string {
  if (!["http:", "https:"].includes(URL.parse(text)?.protocol ?? "")) {
    throw new InvalidArgumentError(
      "Allowed: a whole URL with http or https, such as http://localhost:3000.",
    );
  }
  return text;
}
