import { createHash } from "node:crypto";
import type { Command, Outcome, RedisConnection } from "./redis-connection.ts";

// Upstash reads flags from this first line of a script. Redis itself rejects a script with this
// line.
const FLAG_LINE = /^#!lua flags=allow-key-locking(?=\r?\n|$)/;

/**
 * Wraps a connection, and removes Upstash's flag from scripts before Redis gets them.
 *
 * So the client and Redis have different digests of one script. The wrapper keeps these pairs of digests forever, which
 * is safe: only Redis decides whether it still has a script. After SCRIPT FLUSH, EVALSHA fails with NOSCRIPT, as on
 * Upstash.
 */
export function withScriptFlag(connection: RedisConnection): RedisConnection {
  const redisDigests = new Map<string, string>();

  function withoutFlag(script: string | Buffer): string | Buffer {
    const source = script.toString();
    if (!FLAG_LINE.test(source)) return script;
    // The line is not removed but emptied, so that line numbers in Lua's errors stay right.
    const stripped = source.replace(FLAG_LINE, "");
    redisDigests.set(sha1(source), sha1(stripped));
    return stripped;
  }

  function redisDigest(digest: string | Buffer): string {
    const given = digest.toString().toLowerCase();
    return redisDigests.get(given) ?? given;
  }

  function toRedis(command: Command): Command {
    const [name, first, ...rest] = command;
    if (first === undefined) return command;
    switch (name.toUpperCase()) {
      case "EVAL":
      case "EVAL_RO":
        return [name, withoutFlag(first), ...rest];
      case "EVALSHA":
      case "EVALSHA_RO":
        return [name, redisDigest(first), ...rest];
      case "SCRIPT":
        if (isWord(first, "LOAD")) return [name, first, ...rest.map(withoutFlag)];
        if (isWord(first, "EXISTS")) return [name, first, ...rest.map(redisDigest)];
    }
    return command;
  }

  /** SCRIPT LOAD must return the digest of the script as the client sent it. */
  function toClient(outcome: Outcome, [name, subcommand = "", script = ""]: Command): Outcome {
    const isLoad = isWord(name, "SCRIPT") && isWord(subcommand, "LOAD");
    return isLoad && "reply" in outcome ? { reply: Buffer.from(sha1(script)) } : outcome;
  }

  const allToClient = (outcomes: Outcome[], commands: readonly Command[]): Outcome[] =>
    outcomes.map((outcome, index) => toClient(outcome, commands[index] as Command));

  return {
    ...connection,

    async run(commands) {
      return allToClient(await connection.run(commands.map(toRedis)), commands);
    },

    async transaction(commands) {
      const outcomes = await connection.transaction(commands.map(toRedis));
      return Array.isArray(outcomes) ? allToClient(outcomes, commands) : outcomes;
    },
  };
}

function isWord(word: string | Buffer, expected: string): boolean {
  return word.toString().toUpperCase() === expected;
}

function sha1(text: string | Buffer): string {
  return createHash("sha1").update(text).digest("hex");
}
