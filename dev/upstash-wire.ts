import type { Command, Outcome, Reply } from "./redis-connection.ts";

/** What stands in an answer's `result`. */
export type JsonReply = string | number | null | JsonReply[];

/** One entry of an answer, and the whole answer to a single command. */
export type Entry = { result: JsonReply } | { error: string };

/** A request that cannot be understood; the message is for the client. */
export class BadRequest extends Error {
  override name = "BadRequest";
}

// A REST call has no connection of its own to use these on. On the one behind this server, which
// all calls share, they would leave a mode behind or hold everybody up.
const CONNECTION_COMMANDS = new Set(
  `AUTH BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN DISCARD EXEC HELLO MONITOR
  MULTI PSUBSCRIBE QUIT RESET SELECT SSUBSCRIBE SUBSCRIBE SYNC PSYNC UNWATCH WAIT WATCH`.split(
    /\s+/,
  ),
);

/**
 * Reads one command, as a body of `POST /` carries it: `["SET", "key", "value", "EX", 60]`.
 *
 * @throws {BadRequest} saying what is wrong, and in which command when `where` names it.
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
 * @throws {BadRequest} as `parseCommand` does; then none of them runs.
 */
export function parseCommands(value: unknown): Command[] {
  if (!Array.isArray(value) || value.length === 0) {
    throw new BadRequest("ERR the body must be a JSON array of commands, at least one");
  }
  return value.map((command, index) => parseCommand(command, `command ${index + 1}`));
}

/**
 * Reads a command from a path such as `/set/key/a%2Fb?EX=60`. A body is the last argument before
 * those of the query.
 *
 * @throws {BadRequest} when a part of the path is not valid percent-encoding.
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
      throw new BadRequest(`ERR ${where}, element ${index + 1}: a string or a number is wanted`);
  }
}

function refuseConnectionCommand(command: Command): Command {
  const name = command[0].toUpperCase();
  if (CONNECTION_COMMANDS.has(name)) throw new BadRequest(`ERR ${name} is not available over REST`);
  return command;
}

/** Writes how a command ended. `base64` is what the header `upstash-encoding: base64` asks for. */
export function toEntry(outcome: Outcome, base64: boolean): Entry {
  if ("error" in outcome) return outcome;
  const { reply } = outcome;
  // Only a reply that is "OK" stays as it is: inside a list even "OK" is encoded.
  if (Buffer.isBuffer(reply) && reply.equals(OK)) return { result: "OK" };
  return { result: toJson(reply, base64 ? "base64" : "utf8") };
}

const OK = Buffer.from("OK");

function toJson(reply: Reply, encoding: "base64" | "utf8"): JsonReply {
  if (Array.isArray(reply)) return reply.map((element) => toJson(element, encoding));
  if (Buffer.isBuffer(reply)) return reply.toString(encoding);
  // An error inside a list, which a script can return, has no place of its own in JSON.
  if (reply instanceof Error) return Buffer.from(reply.message).toString(encoding);
  return reply;
}
