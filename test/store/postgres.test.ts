import test from 'ava';
import { testStoreContract } from '../contract/store.ts';
import { leaveOut } from '../fixtures/leftOut.ts';
import { postgresMissing, postgresPlace, removePostgres } from '../fixtures/postgres.ts';

if (postgresMissing) {
  leaveOut('everything with PostgreSQL', postgresMissing);
} else {
  test.after.always(removePostgres);
  testStoreContract(test, postgresPlace);
}
