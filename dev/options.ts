import { Command, InvalidArgumentError, Option } from "commander";
import { DEFAULT_PORT } from "./free-port.ts";

/** Options for running Weir locally. */
export interface DevOptions {
  /** Whether to count in Redis, as in production, instead of in the embedded store. */
  readonly redis: boolean;
  /** Whether to send invented traffic to the Worker while it runs. */
  readonly traffic: boolean;
  /** The port to listen on. @default 8787, or the next free port */
  readonly port?: number;
  /** The URL of the origin to protect. @default the demo origin */
  readonly origin?: string;
}

/**
 * Reads the options from the command line. If `--port` or `--origin` is missing there, the
 * environment variables `PORT` and `ORIGIN_URL` are used.
 *
 * @param args the arguments without the program's name
 * @throws {CommanderError} after printing the error or the help; `exitCode` is 0 after the help
 */
export function parseOptions(args: readonly string[]): DevOptions {
  const options = new Command("npm run dev --")
    .description(
      "Runs Weir on this machine. It needs no account, and uses Redis only with --redis.",
    )
    .option("--redis", "count in Redis through the REST API, as in production")
    .option("--traffic", "send invented traffic until Ctrl-C, to see the dashboard with data")
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
  return { redis: false, traffic: false, ...options };
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
