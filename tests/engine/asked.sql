-- aggregates
SELECT COUNT(*) AS n, COUNT(job) AS jobs, COUNT(DISTINCT job) AS kinds, SUM(income) AS s, AVG(income) AS a, STDDEV(age) AS d FROM person
SELECT region, MEDIAN(income) AS m, QUANTILE(age, 0.9) AS q, MAX(age) AS top FROM person GROUP BY region
SELECT SUM(DISTINCT age) AS s, AVG(DISTINCT age) AS a, BOOL_OR(age > 90) AS any_old FROM person
SELECT sex, CORR(age, income) AS r, REGR_SLOPE(income, age) AS slope FROM person GROUP BY sex
SELECT region, COUNT(*) FILTER (WHERE sex = 'F') * 1.0 / COUNT(*) AS share, COUNT(*) FILTER (WHERE age > 60) / COUNT(*) FILTER (WHERE sex = 'F') AS r FROM person GROUP BY region
-- functions of rows
SELECT AVG(income / NULLIF(age, 0)) AS a, AVG(LN(GREATEST(income, 1))) AS b, AVG(SQRT(age)) AS c, AVG(EXP(age / 50)) AS d FROM person
SELECT SUM(ROUND(income / 12)) AS a, SUM(TRUNC(income / 7)) AS b, SUM(FLOOR(-income / 7)) AS c, SUM(income % 7) AS d, SUM(age // 10) AS e FROM person
SELECT AVG(LENGTH(job)) AS a, COUNT(*) FILTER (WHERE UPPER(job) LIKE '%ER%') AS b, COUNT(*) FILTER (WHERE SUBSTRING(job, 2, 2) = 'ea') AS c FROM person
SELECT SUM(CASE WHEN age >= 65 THEN income WHEN age < 18 THEN 0 END) AS a, SUM(LEAST(income, 500 * age)) AS b, SUM(ABS(income - 40000)) AS c FROM person
SELECT AVG(DATE '2025-01-01' - day) AS a, AVG(DATE_DIFF('month', day, DATE '2025-03-31')) AS b, AVG(DAYOFYEAR(day)) AS c, AVG(WEEK(day)) AS d FROM visit
SELECT COUNT(*) AS n FROM visit WHERE day + INTERVAL 1 MONTH <= DATE '2024-07-31' AND ISODOW(day) <= 5 AND LAST_DAY(day) > DATE '2024-02-01'
SELECT AVG(POWER(age, 1.5)) AS a, AVG(LOG10(cost + 1)) AS b FROM visit v JOIN person p ON v.person_id = p.person_id
-- groups
SELECT STRFTIME(day, '%Y-%m') AS month, COUNT(*) AS n, SUM(cost) AS s FROM visit GROUP BY month
SELECT DAYNAME(day) AS d, reason, COUNT(*) AS n FROM visit GROUP BY d, reason
SELECT DATE_TRUNC('week', day) AS w, COUNT(*) AS n FROM visit WHERE day < DATE '2024-03-01' GROUP BY w
SELECT job, COUNT(*) AS n FROM person GROUP BY job
SELECT LOWER(region) || '-' || sex AS who, AVG(age) AS a FROM person GROUP BY who
SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'grown' ELSE 'old' END AS stage, COUNT(*) AS n FROM person GROUP BY stage
SELECT FLOOR(SQRT(age)) AS root, COUNT(*) AS n FROM person GROUP BY root
SELECT region, sex, COUNT(*) AS n FROM person GROUP BY ROLLUP(region, sex)
SELECT region, BIN(age, 20) AS from_age, COUNT(*) AS n FROM person GROUP BY CUBE(region, BIN(age, 20))
SELECT region, sex, COUNT(*) AS n FROM person WHERE age >= 18 GROUP BY GROUPING SETS ((region, sex), (sex), ())
-- joins and partners
SELECT r.name, p.sex, COUNT(*) AS n, SUM(v.cost) AS s FROM visit v JOIN person p USING (person_id) JOIN region_name r ON p.region = r.region GROUP BY r.name, p.sex
SELECT a.reason, COUNT(*) AS n FROM visit a JOIN visit b ON a.person_id = b.person_id WHERE a.cost < b.cost GROUP BY a.reason
SELECT sex, COUNT(*) AS n FROM person p WHERE EXISTS (SELECT 1 FROM visit v WHERE v.person_id = p.person_id AND v.cost > 100) GROUP BY sex
SELECT sex, COUNT(*) AS n FROM person WHERE person_id NOT IN (SELECT person_id FROM visit WHERE reason = 'chronic') GROUP BY sex
SELECT COUNT(*) AS n FROM person WHERE region IN (SELECT region FROM region_name WHERE name LIKE 'N%')
SELECT COUNT(*) AS n FROM person p LEFT JOIN visit v ON p.person_id = v.person_id WHERE v.person_id IS NULL
-- one number of each unit
SELECT AVG(total) AS a, STDDEV(total) AS d, MEDIAN(total) AS m FROM (SELECT person_id, LEAST(SUM(cost), 2000) AS total FROM visit GROUP BY person_id)
SELECT visits, COUNT(*) AS n FROM (SELECT person_id, COUNT(*) AS visits FROM visit GROUP BY person_id) GROUP BY visits
SELECT reason, AVG(c) AS a, COUNT(*) AS n FROM (SELECT person_id, reason, COUNT(*) AS c FROM visit GROUP BY person_id, reason) GROUP BY reason
-- released rows
SELECT AVG(n) AS mean, MAX(n) AS top, MEDIAN(n) AS middle, COUNT(*) FILTER (WHERE n > 20) AS large FROM (SELECT region, sex, COUNT(*) AS n FROM person GROUP BY region, sex)
WITH w AS (SELECT region, COUNT(*) AS n FROM person WHERE sex = 'F' GROUP BY region), e AS (SELECT region, COUNT(*) AS n FROM person GROUP BY region) SELECT region, w.n / e.n AS share FROM w JOIN e USING (region) WHERE e.n > 10
SELECT region, COUNT(*) AS n FROM person GROUP BY region UNION ALL SELECT 'all', COUNT(*) FROM person
SELECT region, 100 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM person GROUP BY region
SELECT BIN(age, 20) AS a, SUM(COUNT(*)) OVER (ORDER BY a) AS up_to, LAG(COUNT(*)) OVER (ORDER BY a) AS before FROM person GROUP BY a
SELECT region, sex, COUNT(*) AS n FROM person GROUP BY region, sex QUALIFY ROW_NUMBER() OVER (PARTITION BY region ORDER BY n DESC) = 1
SELECT region, AVG(income) - (SELECT AVG(income) FROM person) AS gap FROM person GROUP BY region
SELECT region, COUNT(*) AS n FROM person WHERE income > (SELECT AVG(income) FROM person) GROUP BY region
SELECT region, COUNT(*) AS n FROM person GROUP BY region HAVING SQRT(n) > 3 ORDER BY n DESC LIMIT 3
SELECT region, ROUND(LN(COUNT(*)), 2) AS l, CASE WHEN AVG(income) > 40000 THEN 'high' ELSE 'low' END AS level FROM person GROUP BY region
-- refused
SELECT income FROM person
SELECT COUNT(*) FROM person WHERE person_id = 7
SELECT SUM(income / age) FROM person
SELECT region, COUNT(*) AS n FROM persons GROUP BY region
