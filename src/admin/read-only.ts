import { type AdminOperations, OperationError } from "./operations.ts";

/** Returns the operations of an operator who may only read. All changes are refused. */
export function readOnly(operations: AdminOperations): AdminOperations {
  const refuse = async () => {
    throw new OperationError(
      "forbidden",
      "This credential may only read. Use WEIR_ADMIN_TOKEN, or a user of Access without WEIR_ACCESS_ROLE=read.",
    );
  };
  return {
    rules: () => operations.rules(),
    statistics: (query) => operations.statistics(query),
    totals: () => operations.totals(),
    identify: (selector, rule) => operations.identify(selector, rule),
    peek: (selector, rule) => operations.peek(selector, rule),
    reset: refuse,
    liftBan: refuse,
    overrides: () => operations.overrides(),
    setOverride: refuse,
    removeOverride: refuse,
    audit: (limit, before) => operations.audit(limit, before),
    explain: (request) => operations.explain(request),
  };
}
