import { createHash } from "node:crypto";
import type { Command, Outcome, RedisConnection } from "./redis-connection.ts";

// Upstash reads this first line of a script; plain Redis refuses to run a script that has it.
const FLAG_LINE = /^#!lua flags=allow-key-locking(?=\r?\n|$)/;

/**
 * A connection that accepts scripts with Upstash's flag, and hides that Redis never sees it.
 *
 * A client addresses a script by the digest of what it wrote, Redis by the digest of what it got.
 * The pairs are remembered forever, which is safe: Redis alone decides whether it still has a
 * script, so that after SCRIPT FLUSH an EVALSHA meets NOSCRIPT as it does on Upstash.
 */
export function acceptScriptFlag(connection: RedisConnection): RedisConnection {
  const redisDigests = new Map<string, string>();

  function withoutFlag(script: string | Buffer): string | Buffer {
    const source = script.toString();
    if (!FLAG_LINE.test(source)) return script;
    // The line is emptied, not removed: line numbers in Lua's errors stay those of the source.
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

  /** The digest that SCRIPT LOAD answers is that of the script that the client sent. */
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
