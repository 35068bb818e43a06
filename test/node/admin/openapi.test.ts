import { expect, it } from "vitest";
import { openApiDocument } from "../../../src/admin/api.ts";

// The name is a variable, so that the compiler does not need the package, which only this test uses.
const VALIDATOR = "@seriousme/openapi-schema-validator";

it("the API describes itself by a document that is valid in OpenAPI 3.1", async () => {
  const { Validator } = await import(VALIDATOR);
  const validator = new Validator();
  const result = await validator.validate(structuredClone(openApiDocument()));
  expect(result).toEqual({ valid: true });
  expect(validator.version).toBe("3.1");
});
