import { errors, type UpstashClient } from "../../src/stores/upstash/wire.ts";
import type { CallFailure } from "./rest-answer.ts";
import type { Command, RestClient } from "./rest-client.ts";

/** A client for Weir's store that sends the calls of scripts through the doctor's client. */
export interface ScriptClient extends UpstashClient {
  /** The first call without a usable answer. */
  readonly failure: CallFailure | undefined;
}

/**
 * Creates the client with which Weir's own store runs the vectors. Its calls have the form of
 * Upstash's client, but their answers are bounded, and their failures keep their reasons.
 */
export function createScriptClient(rest: RestClient): ScriptClient {
  let failure: CallFailure | undefined;
  const run = async (name: string, script: string, keys: string[], args: readonly unknown[]) => {
    const command = [name, script, keys.length, ...keys, ...args] as unknown as Command;
    const answer = await rest.run(command).catch((error) => {
      failure ??= error;
      throw error;
    });
    if ("error" in answer) throw new errors.UpstashError(answer.error);
    return answer.reply as never;
  };
  return {
    get failure() {
      return failure;
    },
    eval: (script, keys, args) => run("EVAL", script, keys, args),
    evalsha: (digest, keys, args) => run("EVALSHA", digest, keys, args),
  };
}
