import test from 'ava';
import { testChargesModel } from '../contract/chargesModel.ts';
import { postgresMissing, postgresPlace, removePostgres } from '../fixtures/postgres.ts';

if (postgresMissing) {
  test.skip(postgresMissing, () => {});
} else {
  test.after.always(removePostgres);
  testChargesModel(test, postgresPlace, 10_000);
}
