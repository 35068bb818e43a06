/**
 * Lua functions with which a script makes all writes of a piece of work or none. A command fails if its
 * key stores a value of the wrong type, and Redis then keeps the script's earlier writes. So each
 * charge adds a function to `undoSteps` that takes the charge back. A write that cannot be taken
 * back waits in `finalSteps` until no command of the work can fail any more. So extra commands are needed
 * only if a command fails or a group is denied.
 *
 * - `undo()`: takes back the charges of the current work.
 * - `commit()`: runs the final steps of the current work.
 * - `try(work, ...)`: runs the work, which must end with `commit()`. If it fails, takes its charges back,
 *   and replaces what it has added to the reply by the error's message. Returns whether the work
 *   succeeded.
 *
 * An error is a table since Redis 7, and a string in earlier versions.
 */
export const LUA_UNDO = `local reply, undoSteps, finalSteps = {}, {}, {}

local function undo()
  for at = #undoSteps, 1, -1 do
    undoSteps[at]()
  end
  undoSteps, finalSteps = {}, {}
end

local function commit()
  local steps = finalSteps
  undoSteps, finalSteps = {}, {}
  for _, finish in ipairs(steps) do
    finish()
  end
end

local function truncate(size)
  for at = #reply, size + 1, -1 do
    reply[at] = nil
  end
end

local function try(work, ...)
  local size = #reply
  local succeeded, failure = pcall(work, ...)
  if not succeeded then
    undo()
    truncate(size)
    reply[size + 1] = type(failure) == 'table' and failure.err or tostring(failure)
  end
  return succeeded
end

`;
