import test from 'ava';
import { testStoreContract } from '../contract/store.ts';
import { postgresMissing, postgresPlace, removePostgres } from '../fixtures/postgres.ts';

if (postgresMissing) {
  test.skip(postgresMissing, () => {});
} else {
  test.after.always(removePostgres);
  testStoreContract(test, postgresPlace);
}
