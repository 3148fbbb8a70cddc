# What a stricter policy would have said of the admissions that are on record.
waddle decisions replay --policies shop/policies "$DECISIONS" -o json > replayed || [ $? = 1 ]
grep '"replayed"' replayed
waddle check shop/policies --decisions "$DECISIONS"
