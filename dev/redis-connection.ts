import { Redis, ReplyError } from "ioredis";

/** A command's name and its arguments. */
export type Command = [name: string, ...args: (string | Buffer)[]];

/** A reply of Redis. Strings are bytes, so that no value changes. */
export type Reply = Buffer | number | null | Error | Reply[];

/** The result of a command: a reply, or Redis's error message. */
export type Outcome = { reply: Reply } | { error: string };

/** Redis could not be reached, or did not answer. Whether a command was run is unknown. */
export class RedisUnreachable extends Error {
  override name = "RedisUnreachable";
}

/** A connection to Redis. It reconnects automatically. */
export interface RedisConnection {
  /** Runs commands in order. If one fails, the next ones run all the same. */
  run(commands: readonly Command[]): Promise<Outcome[]>;
  /** Runs commands as a transaction: all of them, without other commands in between, or none. */
  transaction(commands: readonly Command[]): Promise<Outcome[] | { error: string }>;
  close(): void;
}

/**
 * Connects to Redis.
 *
 * @throws {RedisUnreachable} if Redis does not answer. `run` and `transaction` throw it too, at once and
 * without a retry: a repeated increment would count twice
 */
export async function connectRedis(address: {
  host: string;
  port: number;
}): Promise<RedisConnection> {
  const client = new Redis({
    ...address,
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => 50,
  });
  // Each failed command rejects already. Without a listener the client would also print the error.
  client.on("error", () => {});
  try {
    await client.connect();
  } catch (cause) {
    client.disconnect();
    throw new RedisUnreachable(`No Redis at ${address.host}:${address.port}`, { cause });
  }

  // In capitals, because the client changes the replies of commands that it knows by their lower-case
  // names (HGETALL becomes an object). This function must return the reply of Redis.
  const send = ([name, ...args]: Command): Promise<Outcome> =>
    outcomeOf(client.callBuffer(name.toUpperCase(), ...args));

  return {
    run: (commands) => Promise.all(commands.map(send)),

    async transaction(commands) {
      // All are written at once, so no other command of this connection can come between.
      const [, ...results] = await Promise.all([
        send(["MULTI"]),
        ...commands.map(send),
        send(["EXEC"]),
      ]);
      const exec = results.at(-1) as Outcome;
      if ("error" in exec) return exec;
      return (exec.reply as Reply[]).map((reply) =>
        reply instanceof Error ? { error: reply.message } : { reply },
      );
    },

    close: () => client.disconnect(),
  };
}

async function outcomeOf(pending: Promise<unknown>): Promise<Outcome> {
  try {
    return { reply: (await pending) as Reply };
  } catch (cause) {
    if (cause instanceof ReplyError) return { error: (cause as Error).message };
    throw new RedisUnreachable("Redis did not answer", { cause });
  }
}
