-- Counts in fixed windows, with the algorithm of engine/fixed-window.ts. `npm run assets` puts this file without its
-- comments into script.generated.ts. upstash-store.ts adds a first line with the constants USES_REDIS_TIME,
-- MAX_COUNT, EXPIRY_GRACE_MS, BLOCK_SHARE and SLOT_RETRY_MS. wire.ts writes the arguments and reads the reply.
--
-- KEYS   For each counter, in the order of ARGV: its key, the key of its ban if it has one, and the key of its
--        strikes if its bans become longer. With the clock `edge`, these are the keys as stored, so that every
--        key that the script uses is declared. With the clock `store`, the script adds the window's number.
-- ARGV   The Worker's time in ms with the clock `edge`, otherwise 0; the number of entries; and for each entry:
--        - with the clock `edge`, the entry's time in ms
--        - the counters to return quota to, each followed by the quota and the window in which it was charged
--        - the counters to adjust, each followed by 0, or by 1 and the number of the window to which the cost belongs
--        - the counters to remove, each followed by 1 if its count is kept
--        - the group, and the number of equal requests for it
--        A list begins with its length. `readCounter` reads a counter.
-- Reply  Integers only, except the messages of errors. The time in ms; for each entry, what `adjust`, `remove` and
--        `decide` answer, or the message of an error; and the number of commands that the script has called.
--
-- A plain counter is an integer. Redis can add to it without a read, so it is charged first. What does not fit is taken
-- back before the script ends, and nobody sees it. All other rows are read, decided and written:
-- - A counter that rolls over is a text, `W:count:limit`. `W` is the number of the window in which it was last written,
--   and `count` its count at that time. `limit` determined the expiry of its key.
-- - A counter of sub-windows is a text, `W:count,count,…`: the counts of the sub-window `W` and of those before it.
-- - The slots of a client are a hash: the id of each slot, and the time in ms when it expires. So a return only removes
--   a field, which Redis allows even if it is full.
-- - A ban is a key that expires when the ban ends, so the clock of Redis ends it. Strikes are an integer.

local commands = 0
local function call(...)
  commands = commands + 1
  return redis.call(...)
end

local now = tonumber(ARGV[1])
if USES_REDIS_TIME then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Writes an integer so that Redis can read it. Lua itself would write 10^15 as 1e+15.
local function digits(number)
  return string.format('%.0f', number)
end

local argAt, keyAt = 1, 0
local function nextArg()
  argAt = argAt + 1
  return tonumber(ARGV[argAt])
end

local function nextKey(suffix)
  keyAt = keyAt + 1
  return USES_REDIS_TIME and KEYS[keyAt] .. suffix or KEYS[keyAt]
end

-- Sets the current window of a calendar counter. Lua knows no time zones, so the arguments contain the number of the
-- window before the Worker's current window, and the starts of this window and of the next three. `ends` has the ends
-- of the first three, up to `lastEnd`. If the time is in none of them, a clock is wrong by a whole window. No
-- command may use a counter with this `fault`, but the script must go on reading arguments.
local function readCalendar(c)
  local window, start = nextArg(), nextArg()
  c.windowMs, c.ends, c.lastEnd = c.offsetMs, {}, window + 2
  for at = window, window + 2 do
    local nextStart = nextArg()
    c.ends[at] = nextStart
    if start <= now and now < nextStart then c.window, c.resetMs = at, nextStart - now end
    start = nextStart
  end
  if not c.window then
    c.window, c.fault = 0, 'the clocks of Redis and the Worker differ by a whole window'
  end
end

-- Returns the next counter from KEYS and ARGV. Its fields have the names of `Counter` in TypeScript; `unit` is what one
-- request charges. `window` and `resetMs` are those of its current window. A calendar counter has the window 0, and the
-- longest length of its windows as the offset.
local function readCounter()
  local c = { limit = nextArg(), windowMs = nextArg(), offsetMs = nextArg(), cost = nextArg(),
    ceiling = nextArg() }
  -- 1 if it rolls over, 2 if it counts slots, 3 if it has sub-windows; 1 if it is only checked; its block, the id of
  -- its slot, or the number of its sub-windows.
  local kind, isChecked = nextArg(), nextArg() == 1
  c.rollsOver, c.unit, c.block = kind == 1, isChecked and 0 or math.max(0, c.cost), nextArg()
  if kind == 2 then c.slot, c.block = digits(c.block), 0 end
  if kind == 3 then c.subWindows, c.block = c.block, 0 end
  c.isPlain = kind == 0
  -- The number of the lengths of its bans; 1 if it never bans; the lengths in ms, and when strikes are forgotten. Lua
  -- takes longer for a table with more than 16 fields, even if they are nil, so only a counter with bans has these.
  local lengths, neverBans = nextArg(), nextArg() == 1
  if lengths > 0 then
    c.neverBans, c.lengthsMs = neverBans, {}
    for at = 1, lengths do c.lengthsMs[at] = nextArg() end
    c.forgetAfterMs = nextArg()
  end
  if c.slot then
    c.window, c.resetMs = 0, SLOT_RETRY_MS
  elseif c.windowMs == 0 then
    readCalendar(c)
  else
    c.window = math.floor((now - c.offsetMs) / c.windowMs)
    c.resetMs = (c.window + 1) * c.windowMs + c.offsetMs - now
  end
  c.key = nextKey(c.isPlain and ':' .. digits(c.window) or '')
  if lengths > 0 then c.banKey = nextKey('') end
  if lengths > 1 then c.strikesKey = nextKey('') end
  return c
end

-- Reads

local function foreignValue() error('a key has a value that is not a counter', 0) end

-- Returns a stored integer. No answer can have a larger one, and a call answers for many clients.
local function integer(text)
  local number = tonumber(text)
  return math.abs(number) <= MAX_COUNT and number or foreignValue()
end

-- Returns the integer under a key; 0 if there is none.
local function readInteger(key)
  local stored = call('GET', key) or '0'
  return string.match(stored, '^%d+$') and integer(stored) or foreignValue()
end

-- Enters the window of the last charge if it is later than the window that the clock shows, because a clock has stepped
-- back or the start of the windows was changed. If the script does not know the end of a calendar window, `resetMs` is
-- too long, so that no client retries too early.
local function enterWindow(c, window)
  local known = c.window
  if c.ends then
    known = math.min(window, c.lastEnd)
    c.resetMs = c.ends[known] - now
  end
  c.resetMs = math.min(MAX_COUNT, c.resetMs + (window - known) * c.windowMs)
  c.window = window
end

local function readRolling(c)
  local stored = call('GET', c.key)
  if not stored then return 0 end
  local window, count, limit = string.match(stored, '^(-?%d+):(%d+):(%d+)$')
  if not window then foreignValue() end
  c.row = { window = integer(window), count = integer(count), limit = integer(limit) }
  if c.row.window > c.window then enterWindow(c, c.row.window) end
  return math.max(0, c.row.count - (c.window - c.row.window) * c.limit)
end

-- Sets `counts`, of the current sub-window and of those before it, and returns their sum.
local function readSubWindows(c)
  local stored, age, sum = call('GET', c.key), 0, 0
  c.counts = {}
  if stored then
    local window, counts = string.match(stored, '^(-?%d+):(%d[%d,]*)$')
    if not window then foreignValue() end
    if integer(window) > c.window then enterWindow(c, integer(window)) end
    age = c.window - window
    for count in string.gmatch(counts, '%d+') do
      if age <= c.subWindows then c.counts[age + 1], sum = integer(count), sum + count end
      age = age + 1
    end
  end
  for at = 1, c.subWindows + 1 do c.counts[at] = c.counts[at] or 0 end
  return math.min(MAX_COUNT, sum)
end

-- Many slots of a client can be taken and returned in one call, so they are read once. `ends` has the time of each
-- slot's end, and `returned` the ids of slots to remove.
local slotsByKey = {}
local function slotsAt(key)
  slotsByKey[key] = slotsByKey[key] or { returned = {} }
  return slotsByKey[key]
end

-- Counts the open slots, except the one that the request has taken already. It does not count against the request.
local function readSlots(c)
  local slots, count = slotsAt(c.key), 0
  if not slots.ends then
    local stored, ends = call('HGETALL', c.key), {}
    for at = 1, #stored, 2 do
      if not slots.returned[stored[at]] then
        ends[stored[at]] = tonumber(stored[at + 1]) or foreignValue()
      end
    end
    slots.ends = ends
  end
  for id, ends in pairs(slots.ends) do
    if ends > now and id ~= c.slot then count = count + 1 end
  end
  c.isOpen = (slots.ends[c.slot] or 0) > now
  return count
end

-- Sets `count`, the quota used without this request.
local function readCount(c)
  c.count = c.slot and readSlots(c) or c.rollsOver and readRolling(c)
    or c.subWindows and readSubWindows(c) or readInteger(c.key)
end

-- Returns the ms until the client's ban ends; 0 if there is no ban.
local function readBanMs(c)
  return c.banKey and math.max(0, call('PTTL', c.banKey)) or 0
end

-- Writes

-- The plain counters that the current work has charged.
local charged = {}

-- Charges a plain counter, and sets its `count` before the charge. A sum above 2^53 - 1 is inexact in Lua, so the
-- charge is then taken back at once, and the exact count returned. No charge is larger, so nothing is hidden.
local function charge(c, amount)
  local sum = call('INCRBY', c.key, digits(amount))
  c.count, c.charge = sum - amount, amount
  charged[#charged + 1] = c
  if sum > MAX_COUNT then c.count, c.charge = call('DECRBY', c.key, digits(amount)), 0 end
  if c.count < 0 or c.count > MAX_COUNT then foreignValue() end
end

-- Changes the charge of a plain counter. A counter at 0 has no key, and its first charge determines the key's expiry.
local function setCharge(c, amount)
  local change = amount - c.charge
  c.charge = amount
  if c.count + amount == 0 then
    call('DEL', c.key)
  elseif change ~= 0 then
    call(change > 0 and 'INCRBY' or 'DECRBY', c.key, digits(math.abs(change)))
  end
  if c.count == 0 and amount > 0 then
    call('PEXPIRE', c.key, digits(c.resetMs + EXPIRY_GRACE_MS))
  end
end

-- Stores a count of a window. The key expires when the grants of later windows have repaid `left`, the rest of the
-- count. The value includes the limit. A later call with a lower limit then knows that the key must live longer.
local function writeRolling(c, left, window, count)
  local windows = 1
  if c.limit > 0 then windows = math.max(1, math.ceil(left / c.limit)) end
  local ttlMs = c.resetMs + (windows - 1) * c.windowMs + EXPIRY_GRACE_MS
  call('SET', c.key, digits(window) .. ':' .. digits(count) .. ':' .. digits(c.limit),
    'PX', digits(math.min(ttlMs, MAX_COUNT)))
end

-- Stores the counts of sub-windows up to the oldest that is not 0. The key expires when none of them counts any more.
local function writeSubWindows(c)
  local texts, last = {}, 1
  for at, count in ipairs(c.counts) do
    texts[at] = digits(count)
    if count > 0 then last = at end
  end
  call('SET', c.key, digits(c.window) .. ':' .. table.concat(texts, ',', 1, last),
    'PX', digits(math.min(c.resetMs + c.subWindows * c.windowMs + EXPIRY_GRACE_MS, MAX_COUNT)))
end

-- Extends the expiry of a debt if the limit was lowered: see `keepDebt` in fixed-window.ts.
local function keepDebt(c)
  local row = c.row
  if row and c.count > 0 and c.cost ~= 0 and c.limit > 0 and c.limit < row.limit then
    writeRolling(c, c.count, row.window, row.count)
  end
end

-- Takes or renews the counter's slot.
local function takeSlot(c)
  local slots, ends = slotsAt(c.key), now + c.windowMs
  call('HSET', c.key, c.slot, digits(ends))
  slots.ends[c.slot], slots.returned[c.slot], slots.isTaken = ends, nil, true
end

local function returnSlot(c)
  local slots = slotsAt(c.key)
  slots.returned[c.slot] = true
  if slots.ends then slots.ends[c.slot] = nil end
end

-- Removes returned slots. If slots of a key were taken, also removes expired ones, and the key then expires with its
-- last slot. None of these commands needs memory.
local function finishSlots(key, slots)
  if slots.isTaken then
    local last = now + 1
    for id, ends in pairs(slots.ends) do
      last = math.max(last, ends)
      slots.returned[id] = slots.returned[id] or ends <= now or nil
    end
    call('PEXPIRE', key, digits(last - now))
  end
  local ids = {}
  for id in pairs(slots.returned) do ids[#ids + 1] = id end
  if #ids > 0 then call('HDEL', key, unpack(ids)) end
end

-- Returns unused quota to a plain counter in the window of the charge, if the count is at least this quota.
local function returnUnused(c, quota)
  local count = call('DECRBY', c.key, digits(quota))
  if count == 0 or count == -quota then
    call('DEL', c.key)
  elseif count < 0 then
    call('INCRBY', c.key, digits(quota))
  end
end

-- Adds a strike if bans become longer.
local function writeBan(c)
  call('SET', c.banKey, 1, 'PX', digits(c.newBanMs))
  if not c.strikesKey then return end
  call('SET', c.strikesKey, digits(c.strikes + 1), 'PX', digits(c.newBanMs + c.forgetAfterMs))
end

-- Decisions

local reply = {}
local function answer(...)
  for _, value in ipairs({ ... }) do reply[#reply + 1] = value end
end

-- Answers with a counter's state. The end of a sub-window follows from its number.
local function answerState(c, count, banMs)
  answer(count, c.resetMs, banMs)
  if c.subWindows then answer(c.window, unpack(c.counts)) end
end

-- Runs a piece of work for the counters of an entry: all of its writes or none. A command fails if its key stores a
-- value of the wrong type, or if Redis is full. Then the charges are taken back, and the message replaces the answer.
-- An error is a table since Redis 7, and a string before.
local function try(work, counters, times)
  charged = {}
  local succeeded, failure = pcall(function()
    for _, c in ipairs(counters) do
      if c.fault then error(c.fault, 0) end
    end
    work(counters, times)
  end)
  if not succeeded then
    for _, c in ipairs(charged) do pcall(setCharge, c, 0) end
    answer(type(failure) == 'table' and failure.err or tostring(failure))
  end
end

-- Returns the quota to charge for some requests together: their cost, or the counter's block.
local function chargeOf(c, count, requests)
  if c.unit == 0 then return 0 end
  return math.max(c.unit * requests, math.min(c.block, math.floor((c.ceiling - count) / BLOCK_SHARE)))
end

-- Returns how many of the requests this counter admits. Charges a plain counter for all of them at once, unless the
-- cost never fits or another counter has denied them.
local function fittingIn(c, requests)
  local most = c.unit > 0 and math.min(requests, math.floor(c.ceiling / c.unit)) or 0
  c.banMs = readBanMs(c)
  if most > 0 and c.banMs == 0 and c.isPlain then
    charge(c, chargeOf(c, 0, most))
  else
    readCount(c)
  end
  if c.banMs > 0 or c.count + c.cost > c.ceiling then return 0 end
  return c.unit > 0 and math.floor((c.ceiling - c.count) / c.unit) or requests
end

-- Plans a ban of a client that exceeds the counter. A client that is banned already gets no further ban.
local function planBan(c)
  if c.banKey and c.banMs == 0 and not c.neverBans and c.count + c.taken + c.cost > c.ceiling then
    c.strikes = c.strikesKey and readInteger(c.strikesKey) or 0
    c.newBanMs = c.lengthsMs[math.min(c.strikes + 1, #c.lengthsMs)]
  end
end

local function write(c)
  if c.charge then
    setCharge(c, c.taken)
  elseif c.taken == 0 then
    keepDebt(c)
  elseif c.slot then
    takeSlot(c)
  elseif c.subWindows then
    c.counts[1] = c.counts[1] + c.taken
    writeSubWindows(c)
  else
    writeRolling(c, c.count + c.taken, c.window, c.count + c.taken)
  end
  if c.newBanMs then writeBan(c) end
end

-- Decides equal requests as if they came one after the other: the first ones are admitted, as many as fit.
local function decide(counters, times)
  local fitting = times
  for _, c in ipairs(counters) do fitting = math.min(fitting, fittingIn(c, fitting)) end
  for _, c in ipairs(counters) do
    c.taken = fitting > 0 and chargeOf(c, c.count, fitting) or 0
    if fitting < times then planBan(c) end
  end
  for _, c in ipairs(counters) do write(c) end
  if fitting > 0 then
    answer(fitting)
    for _, c in ipairs(counters) do
      answerState(c, c.count + c.taken, 0)
      answer(c.taken)
    end
  end
  if fitting < times then
    answer(0)
    for _, c in ipairs(counters) do
      answerState(c, math.min(MAX_COUNT, c.count + c.taken), c.newBanMs or c.banMs)
      answer(0)
    end
  end
end

-- Adds the cost of a counter to the sub-window that was charged, if it still counts. Takes a refund without such a
-- sub-window from the newest counts. See `withCharge` in sub-windows.ts.
local function planSubWindows(c)
  local left, age = math.min(c.cost, MAX_COUNT - c.count), c.chargedIn and c.window - c.chargedIn
  c.after = c.count
  for at, count in ipairs(c.counts) do
    if age and at == age + 1 or not age and (c.cost < 0 or at == 1) then
      local change = math.max(-count, left)
      c.counts[at], c.after, left = count + change, c.after + change, left - change
    end
  end
end

-- Adds the cost of a counter, even if no quota is left, unless it was charged in another window. Renews a slot, or
-- gives it back if the cost is negative. `after` is the count then.
local function planChange(c)
  if not c.isPlain or c.cost == 0 or (c.chargedIn or c.window) ~= c.window then
    readCount(c)
  else
    charge(c, c.cost)
  end
  if c.subWindows then return planSubWindows(c) end
  local isDue = (c.chargedIn or c.window) == c.window
  if c.slot then c.cost, isDue = c.cost < 0 and 0 or 1, c.isOpen end
  c.after = math.min(MAX_COUNT, math.max(0, c.count + (isDue and c.cost or 0)))
end

local function writeChange(c)
  if c.charge then
    setCharge(c, c.after - c.count)
  elseif c.slot and c.isOpen then
    (c.cost == 0 and returnSlot or takeSlot)(c)
  elseif c.subWindows and c.after ~= c.count then
    writeSubWindows(c)
  elseif c.rollsOver and c.after ~= c.count then
    writeRolling(c, c.after, c.window, c.after)
  end
end

-- Adjusts counters. Each must occur only once.
local function adjust(counters)
  for _, c in ipairs(counters) do
    planChange(c)
    c.banMs = readBanMs(c)
  end
  for _, c in ipairs(counters) do writeChange(c) end
  answer(1)
  for _, c in ipairs(counters) do answerState(c, c.after, c.banMs) end
end

-- Removes the counters' bans, strikes and counts, except counts with `keepsCount`. A DEL of many keys is billed as one
-- command. Each has at most a thousand keys, because a Lua function takes only some thousand values.
local function remove(counters)
  local keys = {}
  for _, c in ipairs(counters) do
    if not c.keepsCount then keys[#keys + 1], slotsByKey[c.key] = c.key, nil end
    keys[#keys + 1] = c.banKey
    keys[#keys + 1] = c.strikesKey
  end
  for at = 1, #keys, 1000 do call('DEL', unpack(keys, at, math.min(at + 999, #keys))) end
  answer(1)
end

-- Reads a list of counters. `readMore` reads the integers that follow each counter.
local function readList(readMore)
  local counters = {}
  for index = 1, nextArg() do
    counters[index] = readCounter()
    readMore(counters[index])
  end
  return counters
end

-- Runs all entries. The script reads the arguments of every entry, even if one fails.
answer(now)
for _ = 1, nextArg() do
  if not USES_REDIS_TIME then now = nextArg() end
  local unused = readList(function(c) c.quota, c.chargedIn = nextArg(), nextArg() end)
  local adjusted = readList(function(c) c.chargedIn = nextArg() == 1 and nextArg() or nil end)
  local removed = readList(function(c) c.keepsCount = nextArg() == 1 end)
  local group = readList(function() end)
  local times = nextArg()
  for _, c in ipairs(unused) do
    if c.chargedIn == c.window and not c.fault then
      pcall(c.slot and returnSlot or returnUnused, c, c.quota)
    end
  end
  if #adjusted > 0 then try(adjust, adjusted) end
  if #removed > 0 then try(remove, removed) end
  if #group > 0 then try(decide, group, times) end
end
-- A key with a foreign value must not fail the work of other clients.
for key, slots in pairs(slotsByKey) do pcall(finishSlots, key, slots) end
answer(commands)

return reply
