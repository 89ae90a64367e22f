import test from 'ava';
import { testChargesModel } from '../contract/charges_model.ts';
import { postgresMissing, postgresPlace, removePostgres } from '../fixtures/postgres.ts';

if (postgresMissing) {
  test.skip(postgresMissing, () => {});
} else {
  test.after.always(removePostgres);
  testChargesModel(test, postgresPlace, 10_000);
}
