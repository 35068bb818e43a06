import type { Counter } from "../../engine/counter.ts";
import { StoreError } from "../store-error.ts";
import { errors } from "./upstash-client.ts";

/**
 * Converts an error of a call into a `StoreError`.
 *
 * @param secrets texts that the error's message must not contain
 */
export function toStoreError(error: unknown, secrets: readonly string[]): StoreError {
  if (error instanceof StoreError) return error;
  if (error instanceof errors.UpstashJSONParseError) {
    return new StoreError("invalid-reply", "the answer is not JSON");
  }
  if (error instanceof errors.UpstashError) {
    return new StoreError("error-reply", publicMessage(error, secrets));
  }
  if (error instanceof DOMException && /^(Timeout|Abort)Error$/.test(error.name)) {
    return new StoreError("timeout", "no answer in time");
  }
  // The client throws a TypeError if the JSON has neither a result nor an error. In workerd, a
  // connection that is refused or breaks throws a plain Error.
  return error instanceof TypeError
    ? new StoreError("invalid-reply", "the answer has neither a result nor an error")
    : new StoreError("unreachable", "no connection");
}

/** Converts the message of a command that failed in a script. The other parameter is as above. */
export function replyError(message: string, secrets: readonly string[]): StoreError {
  return new StoreError("error-reply", publicMessage({ message }, secrets));
}

/**
 * The identities that a counter's keys contain. A shard's identity consists of the client's
 * identity, `#` and a number.
 */
export function identitiesOf({ identity, alternative }: Counter): string[] {
  // The shards come first, because `#1` would be left over if the client's identity were replaced
  // first.
  const shards = alternative ? [identity, alternative.identity] : [identity];
  return [...shards, identity.replace(/#\d+$/, "")];
}

/**
 * The error message of Redis, such as `WRONGPASS invalid password`, without the command that the
 * client appends. Redis, or a proxy in front of it, may quote the call that it received. So the
 * token and the identities are replaced by `…`.
 */
function publicMessage({ message }: Pick<Error, "message">, secrets: readonly string[]): string {
  const reply = message.replace(/, command was:.*$/s, "");
  return secrets.reduce((text, secret) => text.replaceAll(secret, "…"), reply).slice(0, 200);
}
