import test from 'ava';
import { testLedgerContract } from '../contract/ledger.ts';
import { testLedgerModel } from '../contract/ledgerModel.ts';
import { testRepeatedChargesContract } from '../contract/repeatedCharges.ts';
import { testVerifyContract } from '../contract/verify.ts';
import { leaveOut } from '../fixtures/leftOut.ts';
import { postgresMissing, postgresPlace, removePostgres } from '../fixtures/postgres.ts';

if (postgresMissing) {
  leaveOut('everything with PostgreSQL', postgresMissing);
} else {
  test.after.always(removePostgres);
  testLedgerContract(test, postgresPlace);
  testRepeatedChargesContract(test, postgresPlace);
  testVerifyContract(test, postgresPlace);
  testLedgerModel(test, postgresPlace, 10_000);
}
