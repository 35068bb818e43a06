import type { Command, Outcome, Reply } from "./redis-connection.ts";

/** The `result` of an answer. */
export type JsonReply = string | number | null | JsonReply[];

/** One entry of an answer to several commands, or the whole answer to a single command. */
export type Entry = { result: JsonReply } | { error: string };

/** An invalid request. The message is sent to the client. */
export class BadRequest extends Error {
  override name = "BadRequest";
}

// Commands that need a connection of their own: on the one connection that all REST calls share, they would change the
// mode or block other calls.
const CONNECTION_COMMANDS = new Set(
  `AUTH BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN DISCARD EXEC HELLO MONITOR
  MULTI PSUBSCRIBE QUIT RESET SELECT SSUBSCRIBE SUBSCRIBE SYNC PSYNC UNWATCH WAIT WATCH`.split(
    /\s+/,
  ),
);

/**
 * Reads one command from the body of `POST /`: `["SET", "key", "value", "EX", 60]`.
 *
 * @param where the words for the command in error messages
 * @throws {BadRequest} if the command is invalid
 */
export function parseCommand(value: unknown, where = "the body"): Command {
  if (!Array.isArray(value) || value.length === 0) {
    throw new BadRequest(`ERR ${where} must be a JSON array: a command's name and its arguments`);
  }
  const [name, ...args] = value.map((argument, index) => parseArgument(argument, index, where));
  return refuseConnectionCommand([name as string, ...args]);
}

/**
 * Reads the commands of `POST /pipeline` and `POST /multi-exec`.
 *
 * @throws {BadRequest} if any command is invalid
 */
export function parseCommands(value: unknown): Command[] {
  if (!Array.isArray(value) || value.length === 0) {
    throw new BadRequest("ERR the body must be a JSON array of commands, at least one");
  }
  return value.map((command, index) => parseCommand(command, `command ${index + 1}`));
}

/**
 * Reads a command from a path such as `/set/key/a%2Fb?EX=60`. If there is a body, it becomes an
 * argument, which comes before the arguments from the query.
 *
 * @throws {BadRequest} if the path is not valid percent-encoding
 */
export function parsePath(path: string, body: Buffer, query: URLSearchParams): Command {
  let parts: string[];
  try {
    parts = path.slice(1).split("/").map(decodeURIComponent);
  } catch {
    throw new BadRequest("ERR the path is not valid percent-encoding");
  }
  const [name = "", ...args] = parts;
  const options = [...query].flat().filter((part) => part !== "");
  return refuseConnectionCommand([name, ...args, ...(body.length > 0 ? [body] : []), ...options]);
}

function parseArgument(argument: unknown, index: number, where: string): string {
  switch (typeof argument) {
    case "string":
      return argument;
    case "number":
    case "boolean":
      return `${argument}`;
    default:
      throw new BadRequest(`ERR ${where}, element ${index + 1} must be a string or a number`);
  }
}

function refuseConnectionCommand(command: Command): Command {
  const name = command[0].toUpperCase();
  if (CONNECTION_COMMANDS.has(name)) throw new BadRequest(`ERR ${name} is not available over REST`);
  return command;
}

/**
 * Converts an outcome to JSON.
 *
 * @param base64 whether the request had the header `upstash-encoding: base64`
 */
export function toEntry(outcome: Outcome, base64: boolean): Entry {
  if ("error" in outcome) return outcome;
  const { reply } = outcome;
  // Upstash does not encode a reply that is only "OK". Inside a list, it encodes "OK" too.
  if (reply instanceof Uint8Array && OK.equals(reply)) return { result: "OK" };
  return { result: toJson(reply, base64 ? "base64" : "utf8") };
}

const OK = Buffer.from("OK");

function toJson(reply: Reply, encoding: "base64" | "utf8"): JsonReply {
  if (Array.isArray(reply)) return reply.map((element) => toJson(element, encoding));
  // A script can return an error inside a list. JSON has no errors, so the error becomes a string.
  if (reply instanceof Error) return Buffer.from(reply.message).toString(encoding);
  return typeof reply === "number" || reply === null ? reply : reply.toString(encoding);
}
