import { EXPIRY_GRACE_MS } from "../engine/fixed-window.ts";

/**
 * Whose clock places the windows: `redis`, one clock for the world, at the price of one command
 * (TIME); or `edge`, the Worker's.
 */
export type Clock = "redis" | "edge";

/**
 * The fixed-window decision as a Lua script: the twin of engine/fixed-window.ts.
 *
 *   KEYS  a counter each, all groups in a row. Clock `edge`: with its window, so that every key
 *         the script touches is declared. Clock `redis`: without, because only TIME tells it.
 *   ARGV  the edge's time in ms, or 0; then for each group the number of its counters, and for
 *         each of these limit, cost, window in ms, offset in ms.
 *   Reply integers only: the time in ms; then for each group 1 (admitted) or 0, and for each of
 *         its counters the count and the ms until its window ends.
 *
 * A counter is an unsigned 53-bit field, because BITFIELD can ask and charge in one command, and
 * a command is what Upstash bills. With `room` = 2^53 - 1 - limit, adding cost + room overflows
 * just when count + cost > limit, and OVERFLOW FAIL then changes nothing. Taking `room` off again
 * leaves count + cost; after a failed first step it would go below zero, and fails as well. INCRBY
 * would need a second command to look first, or to take a denied request's charge back.
 */
export function fixedWindowScript(clock: Clock): string {
  // Upstash runs a script under a lock on the whole database unless it says that it needs only
  // the keys it declared.
  const flags = clock === "edge" ? "#!lua flags=allow-key-locking\n" : "";
  return `${flags}
local MAX = 9007199254740991

local function int(number)
  return string.format('%.0f', number)
end

local function used(key)
  return redis.call('BITFIELD_RO', key, 'GET', 'u53', 0)[1]
end

local function take(key, limit, cost)
  local room = MAX - limit
  local steps = redis.call('BITFIELD', key, 'OVERFLOW', 'FAIL',
    'INCRBY', 'u53', 0, int(cost + room), 'INCRBY', 'u53', 0, int(-room), 'GET', 'u53', 0)
  return steps[1] and true or false, steps[3]
end

local function giveBack(key, cost, count)
  if count == cost then
    redis.call('DEL', key)
  else
    redis.call('BITFIELD', key, 'INCRBY', 'u53', 0, int(-cost))
  end
end

${NOW[clock]}
local reply = { now }
local nextArg, nextKey = 2, 1
while nextKey <= #KEYS do
  local size = tonumber(ARGV[nextArg])
  nextArg = nextArg + 1
  local verdict = #reply + 1
  reply[verdict] = 1
  local charges = {}
  for counter = nextKey, nextKey + size - 1 do
    local limit, cost = tonumber(ARGV[nextArg]), tonumber(ARGV[nextArg + 1])
    local length, offset = tonumber(ARGV[nextArg + 2]), tonumber(ARGV[nextArg + 3])
    nextArg = nextArg + 4
    local window = math.floor((now - offset) / length)
    local left = (window + 1) * length + offset - now
    local key = ${KEY[clock]}
    local admitted, count
    if cost == 0 or cost > limit then
      -- Nothing to charge: BITFIELD would create the key all the same.
      count = used(key)
      admitted = count + cost <= limit
    else
      admitted, count = take(key, limit, cost)
      if admitted then
        charges[#charges + 1] = { key = key, cost = cost, count = count, at = #reply + 1 }
        if count == cost then
          redis.call('PEXPIRE', key, int(left + ${EXPIRY_GRACE_MS}))
        end
      end
    end
    if not admitted then
      reply[verdict] = 0
    end
    reply[#reply + 1] = count
    reply[#reply + 1] = left
  end
  if reply[verdict] == 0 then
    for _, charge in ipairs(charges) do
      giveBack(charge.key, charge.cost, charge.count)
      reply[charge.at] = charge.count - charge.cost
    end
  end
  nextKey = nextKey + size
end
return reply
`;
}

const NOW: Record<Clock, string> = {
  redis: `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`,
  edge: "local now = tonumber(ARGV[1])",
};

const KEY: Record<Clock, string> = {
  redis: "KEYS[counter] .. ':' .. int(window)",
  edge: "KEYS[counter]",
};
