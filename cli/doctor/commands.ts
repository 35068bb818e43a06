import { createHash } from "node:crypto";
import { type Examination, newKey } from "./examination.ts";
import { type Finding, finding, isText, plural, quoted } from "./finding.ts";

/**
 * Calls each command that Weir's scripts use. The reply is a list of texts: the name of a command,
 * followed by "ok" or by the error. The key expires after a minute.
 */
const SCRIPT = `local key, reply = KEYS[1], {}
local function try(name, isRight, ...)
  local result = redis.pcall(...)
  local state = 'ok'
  if type(result) == 'table' and result.err then
    state = result.err
  elseif not isRight(result) then
    state = 'the result is wrong'
  end
  reply[#reply + 1] = name
  reply[#reply + 1] = state
end
local function any()
  return true
end
local function overflows(result)
  return type(result) == 'table' and result[1] and not result[2]
end
local function saturates(result)
  return type(result) == 'table' and result[1] == 255
end
try('TIME', function(result)
  return type(result) == 'table' and tonumber(result[1])
end, 'TIME')
try('DEL', any, 'DEL', key)
try('BITFIELD OVERFLOW FAIL', overflows, 'BITFIELD', key, 'OVERFLOW', 'FAIL',
  'INCRBY', 'u63', 0, '9223372036854775807', 'INCRBY', 'u63', 0, 1)
try('PEXPIRE', any, 'PEXPIRE', key, 60000)
try('BITFIELD OVERFLOW SAT', saturates, 'BITFIELD', key, 'OVERFLOW', 'SAT',
  'INCRBY', 'u8', 64, 300)
try('BITFIELD_RO', any, 'BITFIELD_RO', key, 'GET', 'u63', 0)
try('PTTL', any, 'PTTL', key)
try('SET PX', any, 'SET', key, '1', 'PX', 60000)
try('GET', function(result)
  return result == '1'
end, 'GET', key)
try('MGET', function(result)
  return result[1] == '1'
end, 'MGET', key)
return reply
`;

const FLAG = "#!lua flags=allow-key-locking\n";

/** The result of the check, and whether the server accepts Upstash's flag for scripts. */
export interface CommandResult {
  readonly findings: readonly Finding[];
  readonly acceptsFlag: boolean;
}

/** Checks that the database runs scripts with all commands that Weir uses. */
export async function checkCommands(examination: Examination): Promise<CommandResult> {
  const { rest, config } = examination;
  const key = newKey(examination, "commands");
  const answer = await rest.run(["EVAL", SCRIPT, 1, key]);
  if ("error" in answer) {
    return { findings: [finding("scripts-refused", answer.error)], acceptsFlag: false };
  }
  const findings = [commandFinding(answer.reply)];
  const cached = await rest.run(["EVALSHA", sha1(SCRIPT), 1, key]);
  if ("error" in cached) {
    const code = cached.error.startsWith("NOSCRIPT") ? "script-cache-off" : "scripts-refused";
    findings.push(finding(code, cached.error));
  }
  const flagged = await rest.run(["EVAL", `${FLAG}return 1`, 1, key]);
  const acceptsFlag = "reply" in flagged;
  if ("error" in flagged && config.clock === "edge") {
    findings.push(finding("script-flag-refused", flagged.error));
  }
  return { findings, acceptsFlag };
}

function commandFinding(reply: unknown): Finding {
  const texts = Array.isArray(reply) && reply.every(isText) ? reply.map(String) : [];
  const states = texts.flatMap((name, index) =>
    index % 2 === 0 ? [{ name, state: texts[index + 1] ?? "" }] : [],
  );
  if (states.length === 0)
    return finding("scripts-refused", "the script returned no list of texts");
  const missing = states.filter(({ state }) => state !== "ok");
  if (missing.length === 0) {
    return finding("commands-ok", states.map(({ name }) => name).join(", "));
  }
  const list = missing.map(({ name, state }) => `${quoted(name)}: ${quoted(state)}`).join("; ");
  return finding("command-missing", `${plural(missing.length, "command")}: ${list}`);
}

function sha1(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}
